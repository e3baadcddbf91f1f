/**
 * Events for the parent instance, with fixed fields, each in one line of JSON. A production enclave
 * has no readable console, so its operator reads these events in place of the log. An event never contains a
 * line of the log, since an application may write anything into the log. For a sealed request, events report
 * only the arrival.
 */
import { Socket } from 'node:net';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import type { RequestEnd } from 'sui-enclave-service/http/in_flight';
import type { Logger } from 'sui-enclave-service/log';
import { RateLimit } from 'sui-enclave-service/rate_limit';
import { classOf, findPlaces, isInstance } from 'sui-enclave-service/thrown';
import { presentCause, presentRequestId } from 'sui-enclave-service/waiting';
import { SEALED_ROUTE } from '../sealing/sealed_route.ts';
import type { TaskReport } from '../tasks/task.ts';

/** Every event of the server and its fields. */
export interface ServerEvents {
  /** The server listens. `ms` is the time since the start of its process. */
  listening: { readonly ms: number };
  /**
   * A plain request was answered with an error, or its caller has left. `code` is null if there is no
   * code.
   */
  request: {
    readonly request_id: string;
    readonly status: number;
    readonly code: string | null;
    readonly ms: number;
  };
  /** The head of a sealed request has arrived. */
  sealed: { readonly request_id: string };
  /** A set of secrets was accepted. `missing` is the number of secrets that it lacks. */
  secrets: { readonly missing: number };
  /** From now on, the NSM confirms the clock, or no longer confirms it. */
  clock: { readonly code: 'CLOCK_CONFIRMED' | 'CLOCK_UNCONFIRMED'; readonly difference_ms: number };
  /** Class, file, line and column of an uncaught error, which no answer reports. */
  uncaught: { readonly class: string; readonly place: string };
  /** A run of a task failed or was late, or was the first to succeed afterwards. */
  task: TaskReport;
  /** Events were dropped before this one; `events` is their number. */
  lost: { readonly events: number };
}

/**
 * Maximum number of events a minute: `many` for events of requests and applications, `tasks` for those of
 * tasks, `few` for all others.
 */
const BUDGETS = { many: 1200, tasks: 120, few: 60 } as const;
const FEW: ReadonlySet<string> = new Set([
  'listening',
  'secrets',
  'clock',
  'uncaught',
] satisfies (keyof ServerEvents)[]);
/** Maximum number of bytes that may wait for init. */
const MAX_WAITING = 64 * 1024;

/**
 * Events that an application declares: the name of each event, and the names of its fields. The values of the
 * fields are numbers.
 */
export type EventDeclarations = Readonly<Record<string, readonly string[]>>;

/** Event of an application that was checked against its declaration. */
export interface ApplicationEvent {
  readonly name: string;
  readonly values: Readonly<Record<string, number>>;
}

export interface EventSink {
  /** Writes a line without waiting. @returns false if there is no room for it */
  write(line: string): boolean;
  close(): void;
}

export class Events {
  readonly #sink: EventSink;
  readonly #budgets = {
    many: new RateLimit(BUDGETS.many),
    tasks: new RateLimit(BUDGETS.tasks),
    few: new RateLimit(BUDGETS.few),
  };
  #dropped = 0;
  /** Number of dropped events that `lost` has not reported. */
  #unreported = 0;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /** Number of events that were dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  close(): void {
    this.#sink.close();
  }

  emit<Name extends keyof ServerEvents>(event: Name, fields: ServerEvents[Name]): void {
    const budget = event === 'task' ? 'tasks' : FEW.has(event) ? 'few' : 'many';
    this.#send(budget, { event, time_ms: Date.now(), ...fields });
  }

  ended({ id, route, isSealed, status, code, isComplete, ms }: RequestEnd): void {
    if (isSealed || route === SEALED_ROUTE || (status < 400 && isComplete)) return;
    this.emit('request', { request_id: id, status, code: codeIn(code), ms: Math.round(ms) });
  }

  uncaught(error: unknown): void {
    if (presentCause() === 'sealed') return;
    this.emit('uncaught', { class: classOf(error), place: findPlace(error) });
  }

  /** Sends an event of the application. An event that a sealed request causes is dropped, and not counted. */
  application({ name, values }: ApplicationEvent): void {
    if (presentCause() === 'sealed') return;
    const request_id = presentRequestId() ?? null;
    this.#send('many', { event: 'application', time_ms: Date.now(), name, request_id, ...values });
  }

  #send(budget: keyof typeof BUDGETS, line: object): void {
    const isAllowed = this.#budgets[budget].take('') === 0;
    if (isAllowed && this.#reportLost() && this.#sink.write(`${JSON.stringify(line)}\n`)) return;
    this.#dropped += 1;
    this.#unreported += 1;
  }

  /** Reports dropped events, if there are any. @returns whether there is room for more */
  #reportLost(): boolean {
    if (this.#unreported === 0) return true;
    const lost = { event: 'lost', time_ms: Date.now(), events: this.#unreported };
    const isWritten = this.#sink.write(`${JSON.stringify(lost)}\n`);
    if (isWritten) this.#unreported = 0;
    return isWritten;
  }
}

/**
 * Returns a code if it is well-formed. Codes should be constants in source code, but nothing else checks an
 * application's codes.
 */
function codeIn(code: string | undefined): string | null {
  return code !== undefined && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
}

/** Returns the location of an error, never its message or a function's name, which may be computed. */
function findPlace(error: unknown): string {
  const [first = ''] = (isInstance(error, Error) && findPlaces(error)) || [];
  return /[\w.-]{1,64}:\d{1,7}:\d{1,7}(?=\)?$)/.exec(first)?.[0] ?? 'unknown';
}

/** Returns a sink that writes to a pipe, whose other end init reads. It never waits for init. */
export function pipeSink(fd: number): EventSink {
  const socket = new Socket({ fd, readable: false, writable: true });
  let isBroken = false;
  socket.on('error', () => {
    isBroken = true;
  });
  socket.unref();
  return {
    write(line) {
      if (isBroken || socket.writableLength + line.length > MAX_WAITING) return false;
      socket.write(line);
      return true;
    },
    close: () => socket.destroy(),
  };
}

/** Returns a sink that logs events, for development, where no process reads a pipe. */
export function logSink(log: Logger): EventSink {
  return {
    write(line) {
      log.info(JSON.parse(line), 'event');
      return true;
    },
    close: () => {},
  };
}

/**
 * Checks an event of the application.
 *
 * @throws ApplicationMistake if app.yaml does not declare the event with these fields
 */
export function declaredEvent(
  declarations: EventDeclarations,
  name: string,
  fields: Readonly<Record<string, number>>,
): ApplicationEvent {
  const declared = Object.hasOwn(declarations, name) ? declarations[name] : undefined;
  if (!declared) throw new ApplicationMistake(`${name} is not among the events of app.yaml`);
  // The fields are in the order of app.yaml.
  const values = Object.fromEntries(declared.map((field) => [field, fields[field] ?? Number.NaN]));
  const isValid =
    Object.keys(fields).length === declared.length &&
    Object.values(values).every((value) => Number.isFinite(value));
  if (isValid) return { name, values };
  throw new ApplicationMistake(
    `the event ${name} must have exactly these fields, each a finite number: ${declared.join(', ')}`,
  );
}

/**
 * Checks that app.yaml and app.ts declare the same events. The image's registers measure app.yaml, where
 * everybody can read the names. The types of `emit` come from app.ts.
 *
 * @throws ConfigError
 */
export function requireSameEvents(
  manifestEvents: EventDeclarations = {},
  moduleEvents: EventDeclarations = {},
): void {
  const formatEvents = (events: EventDeclarations) =>
    Object.entries(events)
      .map(([name, fields]) => [name, ...[...fields].sort()].join(' '))
      .sort();
  const differs = formatEvents(manifestEvents).join('\n') !== formatEvents(moduleEvents).join('\n');
  if (differs)
    throw new ConfigError('the events of app.yaml and those of defineApp in app.ts must be the same');
}
