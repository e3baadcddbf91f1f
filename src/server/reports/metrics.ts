/**
 * The figures of an enclave's server, which the parent instance reads. The parent must learn nothing about a
 * sealed request except its arrival, so no figure counts what a sealed request causes, and no label comes
 * from input.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { RequestEnd } from 'sui-enclave-service/http/in_flight';
import type { Exposition } from 'sui-enclave-service/http/metrics_listener';
import { presentCause } from 'sui-enclave-service/waiting';
import { SEALED_ROUTE } from '../sealing/sealed_route.ts';
import type { TaskState } from '../tasks/task.ts';
import {
  CountsBy,
  counter,
  type Family,
  gauge,
  Histogram,
  OPEN_METRICS_TYPE,
  openMetrics,
} from './open_metrics.ts';

/** Interval between two snapshots, in milliseconds. Anyone who asks more often gets the same bytes again. */
export const SNAPSHOT_MS = 15_000;

const MIB = 1024 ** 2;
const REFUSALS = [
  'OVERLOADED',
  'ANSWER_TIMEOUT',
  'REQUEST_TIMEOUT',
  'SECRETS_MISSING',
  'CLOCK_UNCONFIRMED',
  'INTERNAL',
] as const;

/** The server's own state, as `/readyz` and `/boot` report it. */
export interface ServerState {
  readonly secretsMissing: number;
  readonly isClockConfirmed: boolean;
  /** Whether init has restarted a part of the enclave. */
  readonly hasPartEnded: boolean;
  /** Number of dropped events. Undefined without events. */
  readonly eventsDropped: number | undefined;
  readonly tasks: readonly TaskState[];
}

export class Metrics {
  readonly #state: () => ServerState;
  readonly #withRequests: boolean;
  readonly #delay = monitorEventLoopDelay();
  readonly #timer: NodeJS.Timeout;
  readonly #requests = new CountsBy('outcome', ['answered', 'refused', 'failed', 'left']);
  readonly #seconds = new Histogram([0.01, 0.1, 0.5, 1, 5]);
  readonly #refusals = new CountsBy('code', REFUSALS);
  readonly #upstream = new CountsBy('outcome', ['answered', 'failed']);
  #signatures = 0;
  #sealed = 0;
  #uncaught = 0;
  #snapshot: Exposition;

  /**
   * @param requests with `sealed`, there are only the process's own figures and the number of sealed requests
   */
  constructor(requests: 'any' | 'sealed', state: () => ServerState) {
    this.#withRequests = requests === 'any';
    this.#state = state;
    this.#delay.enable();
    this.#snapshot = this.#render();
    this.#timer = setInterval(() => {
      this.#snapshot = this.#render();
    }, SNAPSHOT_MS).unref();
  }

  /**
   * The last snapshot. A timer takes snapshots, so the host can't request one just before or after a request.
   */
  get snapshot(): Exposition {
    return this.#snapshot;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#delay.disable();
  }

  /** Counts a sealed request whose head has arrived, whatever happens to it. */
  sealedArrived(): void {
    this.#sealed += 1;
  }

  ended({ route, isSealed, status, code, isComplete, ms }: RequestEnd): void {
    if (isSealed || route === SEALED_ROUTE) return;
    this.#requests.add(
      !isComplete ? 'left' : status < 400 ? 'answered' : status < 500 ? 'refused' : 'failed',
    );
    this.#refusals.add(code);
    this.#seconds.add(ms / 1000);
  }

  signed(): void {
    if (presentCause() === 'plain') this.#signatures += 1;
  }

  upstreamEnded(isAnswered: boolean): void {
    if (presentCause() === 'plain') this.#upstream.add(isAnswered ? 'answered' : 'failed');
  }

  /** Counts an uncaught error, which no answer reports. */
  uncaught(): void {
    if (presentCause() !== 'sealed') this.#uncaught += 1;
  }

  #render(): Exposition {
    const families = [...this.#ofProcess(), ...(this.#withRequests ? this.#ofRequests() : [])];
    return { contentType: OPEN_METRICS_TYPE, text: openMetrics(families) };
  }

  /**
   * Returns coarse figures of the process. They do not reveal the work on one request, unless the parent
   * instance repeats the request very often.
   */
  #ofProcess(): Family[] {
    const { user, system } = process.cpuUsage();
    const delay = this.#delay.max / 1e9;
    this.#delay.reset();
    const { secretsMissing, isClockConfirmed, hasPartEnded, eventsDropped, tasks } = this.#state();
    const prefix = 'sui_enclave_';
    return [
      gauge(
        `${prefix}snapshot_seconds`,
        'Time of this snapshot, in Unix time.',
        Math.floor(Date.now() / 1000),
      ),
      gauge('process_start_time_seconds', 'Start of the process, in Unix time.', START_SECONDS),
      counter(
        'process_cpu_seconds',
        'CPU time, in tenths of a second.',
        Math.floor((user + system) / 1e5) / 10,
      ),
      gauge('process_resident_memory_bytes', 'Memory, in whole MiB.', wholeMib(process.memoryUsage.rss())),
      gauge(
        `${prefix}event_loop_delay_seconds`,
        'Longest delay of the event loop since the last snapshot.',
        Math.floor(delay * 20) / 20,
      ),
      gauge(`${prefix}secrets_missing`, 'Secrets that have not arrived.', secretsMissing),
      gauge(`${prefix}clock_confirmed`, '1: the NSM confirms the clock.', Number(isClockConfirmed)),
      gauge(
        `${prefix}part_ended`,
        '1: a part of the enclave has ended and was restarted.',
        Number(hasPartEnded),
      ),
      counter(`${prefix}uncaught_errors`, 'Errors outside of requests.', this.#uncaught),
      counter(`${prefix}sealed_requests`, 'Sealed requests that arrived.', this.#sealed),
      ...(eventsDropped === undefined
        ? []
        : [counter(`${prefix}events_dropped`, 'Events that were not sent.', eventsDropped)]),
      ...ofTasks(tasks),
    ];
  }

  /** Returns the figures of requests that were not sealed. */
  #ofRequests(): Family[] {
    const prefix = 'sui_enclave_plain_';
    return [
      this.#requests.family(`${prefix}requests`, 'Plain requests, which are not sealed.'),
      this.#seconds.family(`${prefix}request_seconds`, 'Durations of plain requests.'),
      this.#refusals.family(`${prefix}refusals`, 'Plain requests that were answered with these codes.'),
      counter(`${prefix}signatures`, 'Signatures that plain requests caused.', this.#signatures),
      this.#upstream.family(
        `${prefix}upstream_requests`,
        'Requests to upstreams that plain requests caused.',
      ),
    ];
  }
}

/** Returns the figures of tasks. Their labels are names of tasks, which the image contains. */
function ofTasks(tasks: readonly TaskState[]): Family[] {
  if (tasks.length === 0) return [];
  const prefix = 'sui_enclave_task_';
  const byTask = (value: (task: TaskState) => number) =>
    Object.fromEntries(tasks.map((task) => [`{task="${task.name}"}`, value(task)]));
  const runs = tasks.flatMap(({ name, runs }) =>
    Object.entries(runs).map(([outcome, count]) => [`_total{task="${name}",outcome="${outcome}"}`, count]),
  );
  return [
    {
      name: `${prefix}runs`,
      type: 'counter',
      help: 'Runs of tasks that have ended, or are late.',
      samples: Object.fromEntries(runs),
    },
    {
      name: `${prefix}failures`,
      type: 'gauge',
      help: 'Runs in a row that failed or were late.',
      samples: byTask(({ failures }) => failures),
    },
    {
      name: `${prefix}overdue`,
      type: 'gauge',
      help: '1: a run has not ended although its time is over.',
      samples: byTask(({ isOverdue }) => Number(isOverdue)),
    },
  ];
}

const START_SECONDS = Math.floor(performance.timeOrigin / 1000);

function wholeMib(bytes: number): number {
  return Math.round(bytes / MIB) * MIB;
}
