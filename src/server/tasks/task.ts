/**
 * A task of an application: work that the server begins by itself in each period. An error of a task ends
 * neither the process nor the task.
 */
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { HttpError } from 'sui-enclave-service/errors';
import type { Logger } from 'sui-enclave-service/log';
import { codeOf, isInstance } from 'sui-enclave-service/thrown';
import { runAsTask, type TaskShare } from 'sui-enclave-service/waiting';
import { EnclaveServerError } from '../enclave_errors.ts';
import { SignedAnswer } from '../keys/signer.ts';

interface TaskDefinition {
  /**
   * Name of the task in the log, metrics, events and warnings, which the host reads: a lower-case letter, and
   * up to 31 lower-case letters, digits and underscores.
   */
  readonly name: string;
  /**
   * Period in milliseconds, from 1000 to 86,400,000. At most one run begins in each period of the enclave's
   * monotonic clock. If no run can begin in a period, the period is skipped.
   */
  readonly everyMs: number;
  /**
   * Maximum delay of a run after the start of its period, in milliseconds, less than `everyMs`. The server
   * draws each delay at random.
   */
  readonly jitterMs: number;
  /**
   * Time limit of a run in milliseconds, at most 600,000. After it, the signal is aborted, and the run counts
   * as late. The next run begins only when this one has ended.
   */
  readonly timeoutMs: number;
  /**
   * Does the work of one period, after the secrets have arrived and while the clock is confirmed.
   *
   * @param signal aborted when the time is over, or when the server stops: pass it to requests
   */
  run(context: TaskContext, signal: AbortSignal): Promise<void>;
}

/** The functions of one run. */
export interface TaskContext {
  /**
   * Makes a signed answer the value of this period, which `latest` returns until a later run publishes the
   * next.
   *
   * @throws ApplicationMistake if this run has published a value already, or has ended. Throws the signal's
   *   reason once the signal is aborted
   */
  publish(value: SignedAnswer): void;
}

/** Outcome of a run. `stopped`: the server stopped during the run; such a run is not counted. */
export type TaskOutcome = 'done' | 'failed' | 'late' | 'stopped';

/** Report of a run that failed or was late, or of the first run that succeeded afterwards. */
export interface TaskReport {
  readonly task: string;
  readonly outcome: Exclude<TaskOutcome, 'stopped'>;
  /** Code of the error with which the run failed; INTERNAL for an error that callers would not see. */
  readonly code: string | null;
  readonly ms: number;
}

/** State of a task, for metrics. */
export interface TaskState {
  readonly name: string;
  /** Number of runs by outcome. A late run counts when its time is over. */
  readonly runs: Readonly<Record<TaskReport['outcome'], number>>;
  /** Number of runs in a row that failed or were late. */
  readonly failures: number;
  /** Whether a run has not ended although its time is over. */
  readonly isOverdue: boolean;
}

/** Clock that determines when runs begin. The time limits of runs do not use it, but real time. */
export interface TaskClock {
  /** Returns the time of a monotonic clock in milliseconds. */
  now(): number;
  /** Returns a random number from 0 up to, but not including, 1. */
  random(): number;
  /** Calls `due` after this time. @returns a function that cancels the call */
  setTimer(due: () => Promise<void>, ms: number): () => void;
}

export interface TaskOptions {
  readonly log: Logger;
  /** Returns whether the server has its secrets, and a clock by which it may sign. */
  isReady(): boolean;
  onReport(report: TaskReport): void;
  readonly clock?: TaskClock | undefined;
}

/** The value that `task` returns. */
export interface Task {
  /** Name of the task, as it was defined. */
  readonly name: string;
  /** Makes the task's state in one server. */
  schedule(options: TaskOptions): ScheduledTask;
}

/** Bounds of the times of a task, in milliseconds. */
const BOUNDS = { everyMs: [1000, 86_400_000], jitterMs: [0, 86_400_000], timeoutMs: [1, 600_000] } as const;

/**
 * Defines a task, which `create` returns among its `tasks`.
 *
 * @throws ConfigError
 * @example
 * task({
 *   name: 'price',
 *   everyMs: 5000,
 *   jitterMs: 500,
 *   timeoutMs: 4000,
 *   async run({ publish }, signal) {
 *     const { cents, at_ms } = await readPrice(signal);
 *     publish(sign(Price, BigInt(at_ms), { cents: BigInt(cents) }));
 *   },
 * });
 */
export function task(definition: TaskDefinition): Task {
  // A caller in JavaScript may pass values of other types.
  const { name, everyMs, jitterMs, run } = definition;
  if (typeof name !== 'string' || !/^[a-z][a-z0-9_]{0,31}$/.test(name)) {
    throw new ConfigError(
      `"${name}" can't be the name of a task: use at most 32 lower-case letters, digits and underscores, a letter first`,
    );
  }
  for (const [property, [from, to]] of Object.entries(BOUNDS)) {
    const value = definition[property as keyof typeof BOUNDS];
    if (Number.isSafeInteger(value) && value >= from && value <= to) continue;
    throw new ConfigError(`${property} of the task ${name} must be an integer from ${from} to ${to}`);
  }
  if (jitterMs >= everyMs) throw new ConfigError(`jitterMs of the task ${name} must be less than everyMs`);
  if (typeof run !== 'function') throw new ConfigError(`run of the task ${name} must be a function`);
  return { name, schedule: (options) => new ScheduledTask(definition, options) };
}

/** Maximum numbers of requests and signatures of a run, including the work that it leaves behind. */
const MAX_CALLS = 16;
const MAX_SIGNATURES = 1;

/**
 * Counts the requests and signatures of a run, and refuses those beyond its limits.
 *
 * @param isOver returns whether the run has ended, or its time is over
 */
function createShare(name: string, isOver: () => boolean): TaskShare {
  const limit = (maximum: number, subject: string) => {
    let taken = 0;
    return () => {
      taken += 1;
      if (!isOver() && taken <= maximum) return;
      throw new ApplicationMistake(
        `a run of the task ${name} may make ${subject}, and none after its end or its time limit`,
      );
    };
  };
  return {
    takeCall: limit(MAX_CALLS, `at most ${MAX_CALLS} requests to upstreams`),
    takeSignature: limit(MAX_SIGNATURES, 'at most one signature'),
  };
}

/** Interval at which a task checks whether it may run, in milliseconds. */
const WAIT_MS = 1000;
/** Maximum pause after failures, in milliseconds, unless the period itself is longer. */
const MAX_PAUSE_MS = 5 * 60_000;

const REAL_CLOCK: TaskClock = {
  now: () => performance.now(),
  random: () => Math.random(),
  setTimer(due, ms) {
    const timer = setTimeout(due, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The state of a task in one server. */
export class ScheduledTask {
  readonly #task: TaskDefinition;
  readonly #options: TaskOptions;
  readonly #clock: TaskClock;
  readonly #runs = { done: 0, failed: 0, late: 0 };
  #failures = 0;
  #isOverdue = false;
  #value: SignedAnswer | undefined;
  /** Start of the first period. */
  #origin = 0;
  #running: Promise<TaskOutcome> | undefined;
  #abort: ((reason: unknown) => void) | undefined;
  #cancel = () => {};
  #isStopped = false;

  constructor(definition: TaskDefinition, options: TaskOptions) {
    this.#task = definition;
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
  }

  get state(): TaskState {
    return {
      name: this.#task.name,
      runs: this.#runs,
      failures: this.#failures,
      isOverdue: this.#isOverdue,
    };
  }

  latest(): SignedAnswer {
    if (this.#value) return this.#value;
    const { name, everyMs } = this.#task;
    throw new EnclaveServerError('TASK_NO_VALUE', `the task ${name} has not published a value yet`, {
      retryAfterSeconds: Math.ceil(everyMs / 1000),
    });
  }

  start(): void {
    this.#origin = this.#clock.now();
    this.#runAt(this.#origin + this.#clock.random() * this.#task.jitterMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    this.#abort?.(new DOMException('The server stops.', 'AbortError'));
    await this.#running;
  }

  run(): Promise<TaskOutcome> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  #runAt(time: number): void {
    if (this.#isStopped) return;
    const due = async () => {
      // A timer of Node may end up to a millisecond early, in the period before.
      if (this.#clock.now() < time) return this.#runAt(time);
      if (!this.#options.isReady()) return this.#runAt(this.#clock.now() + WAIT_MS);
      await this.run();
      this.#runAt(this.#nextTime());
    };
    this.#cancel = this.#clock.setTimer(due, Math.max(0, Math.ceil(time - this.#clock.now())));
  }

  /**
   * Returns a time in the next period. After failures, each pause is twice as long as the one before, and
   * the delay within the period is up to half of the period.
   */
  #nextTime(): number {
    const { everyMs, jitterMs } = this.#task;
    const maxPause = Math.max(1, Math.floor(MAX_PAUSE_MS / everyMs));
    const pause = Math.min(2 ** Math.max(0, this.#failures - 1), maxPause);
    const period = Math.floor((this.#clock.now() - this.#origin) / everyMs) + pause;
    const jitter = this.#failures === 0 ? jitterMs : Math.max(jitterMs, everyMs / 2);
    return this.#origin + period * everyMs + this.#clock.random() * jitter;
  }

  /** Runs the task once. It never throws: an error of the task is its outcome. */
  async #run(): Promise<TaskOutcome> {
    const { name, timeoutMs } = this.#task;
    const start = performance.now();
    const controller = new AbortController();
    const { signal } = controller;
    this.#abort = (reason) => controller.abort(reason);
    const elapsed = () => Math.round(performance.now() - start);
    const timer = setTimeout(() => {
      this.#isOverdue = true;
      this.#count('late', elapsed());
      controller.abort(new DOMException(`The time of the task ${name} is over.`, 'TimeoutError'));
    }, timeoutMs);
    let state: 'running' | 'published' | 'over' = 'running';
    const publish = (value: SignedAnswer) => {
      signal.throwIfAborted();
      if (!(value instanceof SignedAnswer)) {
        throw new ApplicationMistake(`the task ${name} can only publish a value that sign has returned`);
      }
      if (state !== 'running') {
        throw new ApplicationMistake(
          `a run of the task ${name} may publish one value, and none after its end`,
        );
      }
      state = 'published';
      this.#value = value;
    };
    const share = createShare(name, () => state === 'over' || this.#isOverdue);
    let failure: { readonly error: unknown } | undefined;
    try {
      await runAsTask(share, signal, async () => this.#task.run({ publish }, signal));
    } catch (error) {
      failure = { error };
    }
    state = 'over';
    clearTimeout(timer);
    if (this.#isOverdue) {
      this.#isOverdue = false;
      return 'late';
    }
    if (failure && signal.aborted) return 'stopped';
    const outcome = failure ? 'failed' : 'done';
    this.#count(outcome, elapsed(), failure?.error);
    return outcome;
  }

  #count(outcome: TaskReport['outcome'], ms: number, error?: unknown): void {
    const task = this.#task.name;
    const isChanged = outcome !== 'done' || this.#failures > 0;
    this.#runs[outcome] += 1;
    this.#failures = outcome === 'done' ? 0 : this.#failures + 1;
    const level = outcome === 'done' ? 'debug' : 'warn';
    this.#options.log[level]({ task, outcome, ms, ...(outcome === 'failed' && { err: error }) }, 'task');
    if (!isChanged) return;
    const codeOfError = isInstance(error, HttpError) ? codeOf(error) : undefined;
    const code = outcome === 'failed' ? (codeOfError ?? 'INTERNAL') : null;
    this.#options.onReport({ task, outcome, code, ms });
  }
}
