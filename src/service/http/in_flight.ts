import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { quantity } from 'sui-enclave/wording';
import { ServerError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Listed, OrderedList } from '../ordered_list.ts';
import { CallerLeft, runAs, untilOneEnds, WaitingRoom, type Work } from '../waiting.ts';
import type { Connection, Connections } from './connections.ts';
import { refusalCode } from './errors.ts';
import { addHeader, isAnswered, isWrapped } from './respond.ts';

/** Interval at which deadlines are checked, in milliseconds. */
const SWEEP_MS = 250;
/** Time for which refusals are counted before the log reports them, in milliseconds. */
const REPORT_MS = 1000;
/**
 * A connection is closed after this many answers, so that no connection lasts without limit. A connection
 * beyond the maximum age is closed after its next answer. (Node's `maxRequestsPerSocket` announces the end
 * but leaves the connection open.)
 */
const MAX_REQUESTS_PER_CONNECTION = 1000;
const MAX_CONNECTION_AGE_MS = 10 * 60_000;

/**
 * Key under which a response keeps its entry: a WeakMap would cost the garbage collector more than the rest
 * of a request.
 */
const ENTRY = Symbol('entry');
type Tracked = ServerResponse & { [ENTRY]?: Entry };

interface Entry extends Listed<Entry> {
  readonly id: string;
  readonly start: number;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly fail: (error: unknown) => void;
  /**
   * State of the handler, which may run longer than the caller waits. `running`: it holds a slot. `waiting`:
   * it waits for the call of another request, and holds no slot. `none`: no handler runs, or the deadline has
   * passed.
   */
  work: 'none' | 'running' | 'waiting';
  closed: boolean;
  /** Ends the request's waits for calls of other requests. Undefined if it has not waited yet. */
  leaving: AbortController | undefined;
}

export interface InFlightLimits {
  readonly timeoutMs: number;
  /** Maximum number of handlers that run at once. */
  readonly maxRunning: number;
  /**
   * Maximum number of requests that wait for calls of other requests. At most half of this number may wait
   * for the same call.
   */
  readonly maxWaiting: number;
}

/** The end of a request, for metrics and events. */
export interface RequestEnd {
  /** The id in the header `x-request-id`. */
  readonly id: string;
  /** The path of the request's endpoint; null for an unknown path. */
  readonly route: string | null;
  /** Whether the answer was sealed. If so, only the request's id and route may be reported. */
  readonly isSealed: boolean;
  readonly status: number;
  /** Code of the error with which the request was answered; undefined without an error. */
  readonly code: string | undefined;
  /** False if the caller left, or if the deadline passed during the answer. */
  readonly isComplete: boolean;
  /** Milliseconds since the headers arrived. */
  readonly ms: number;
}

/**
 * The requests in flight, each with a generated id, a deadline and a log line when it ends. One class with
 * one listener does all of this, since this work is most of the cost of a request.
 */
export class InFlight {
  readonly #log: Logger;
  readonly #connections: Connections;
  readonly #timeoutMs: number;
  readonly #maxRunning: number;
  /** Entries in the order of their deadlines. */
  readonly #entries = new OrderedList<Entry>();
  readonly #sweeping: NodeJS.Timeout;
  readonly #room: WaitingRoom;
  readonly #onEnd: ((end: RequestEnd) => void) | undefined;
  #running = 0;
  /** Number of requests that were refused since the last report. */
  #refused = 0;
  #report: NodeJS.Timeout | undefined;

  constructor(
    log: Logger,
    connections: Connections,
    limits: InFlightLimits,
    onEnd?: (end: RequestEnd) => void,
  ) {
    this.#onEnd = onEnd;
    this.#log = log;
    this.#connections = connections;
    this.#room = new WaitingRoom(limits.maxWaiting);
    this.#timeoutMs = limits.timeoutMs;
    this.#maxRunning = limits.maxRunning;
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /** Number of requests whose response is still open, or whose handler still runs. */
  get size(): number {
    return this.#entries.size;
  }

  /** Number of requests that wait for another request's call. */
  get waiting(): number {
    return this.#room.size;
  }

  stop(): void {
    clearInterval(this.#sweeping);
    clearTimeout(this.#report);
    if (this.#refused > 0) this.#reportRefused();
  }

  /**
   * Assigns the request an id (header `x-request-id`) and logs a line when it ends: at level info if it
   * failed, otherwise at debug. The lines of requests that are refused with OVERLOADED are at debug too, so
   * that they don't fill the log. One warning a second gives their number. Each line contains only the method
   * and the route of the request, and the code of the error that answered it: the caller controls paths,
   * queries and bodies, which may contain anything.
   *
   * @param fail answers the request with an error; called when the deadline has passed
   * @returns false if the request must not be handled because its connection is closed
   */
  track(request: IncomingMessage, response: ServerResponse, fail: (error: unknown) => void): boolean {
    const connection = this.#connections.find(request);
    if (!connection || request.socket.destroyed) return false;
    const [id, start] = [randomUUID(), performance.now()];
    const entry: Entry = {
      id,
      start,
      request,
      response,
      connection,
      fail,
      work: 'none',
      closed: false,
      leaving: undefined,
      list: undefined,
      before: undefined,
      after: undefined,
    };
    this.#connections.addRequest(connection, entry);
    addHeader(response, 'x-request-id', id);
    const isOld = start - connection.openedAt > MAX_CONNECTION_AGE_MS;
    if (isOld || connection.requests >= MAX_REQUESTS_PER_CONNECTION) response.shouldKeepAlive = false;
    response.on('close', () => this.#end(entry));
    this.#entries.add(entry);
    (response as Tracked)[ENTRY] = entry;
    return true;
  }

  /** Returns the id in the response's header `x-request-id`. */
  idOf(response: ServerResponse): string {
    return (response as Tracked)[ENTRY]?.id ?? '';
  }

  /** Creates a child log with the id of this response's request. */
  logOf(response: ServerResponse): Logger {
    const entry = (response as Tracked)[ENTRY];
    return entry ? this.#log.child({ request_id: entry.id }) : this.#log;
  }

  /**
   * Runs a handler, at most `maxRunning` at a time. A handler counts until it finishes or its deadline has
   * passed, even if its caller has disconnected. Call this only for complete requests, since incomplete
   * requests could block the others. A call within the handler of the same request takes no second slot.
   *
   * @throws OVERLOADED immediately, without a queue
   */
  async work(response: ServerResponse, handler: () => Promise<void> | void): Promise<void> {
    const entry = this.#admit(response);
    if (!entry) return;
    const isNested = entry.work === 'running';
    if (!isNested) this.#running += 1;
    entry.work = 'running';
    // Connections that the handler opens hold `work` in memory for as long as they last. This variable is
    // cleared at the end, so that they don't hold the request too.
    let current: Entry | undefined = entry;
    const work: Work = {
      isSealed: isWrapped(response),
      id: entry.id,
      waitFor: (call, ends) => (current ? this.#waitFor(current, call, ends) : untilOneEnds(call, ends)),
      leavingSignal: () => current && signalOf(current),
    };
    try {
      await runAs(work, handler);
    } finally {
      current = undefined;
      if (!isNested) this.#settle(entry);
    }
  }

  /**
   * Runs a synchronous handler as `work` does, but without a slot, since it never waits.
   *
   * @throws OVERLOADED
   */
  workAtOnce(response: ServerResponse, handler: () => void): void {
    if (this.#admit(response)) handler();
  }

  /** Returns the request's entry; undefined if no caller waits for the answer. @throws OVERLOADED */
  #admit(response: ServerResponse): Entry | undefined {
    const entry = (response as Tracked)[ENTRY];
    // The caller has disconnected, or the deadline has passed.
    if (!entry || entry.closed || response.headersSent) return undefined;
    if (entry.work === 'running' || !this.isFull) return entry;
    throw this.createRefusal();
  }

  /** Whether all slots are taken. */
  get isFull(): boolean {
    return this.#running >= this.#maxRunning;
  }

  /** Creates the error with which requests are refused while all slots are taken. */
  createRefusal(): ServerError {
    return new ServerError(
      'OVERLOADED',
      `the server is busy with ${quantity(this.#maxRunning, 'request')}: try again`,
      { retryAfterSeconds: 1 },
    );
  }

  /**
   * Waits, outside of `work`, for a call that many requests share.
   *
   * @throws OVERLOADED immediately if too many requests wait; the error of the call; CallerLeft
   */
  waitFor<T>(response: ServerResponse, call: Promise<T>): Promise<T> {
    return this.#room.waitFor(call, [this.leaving(response)]);
  }

  /**
   * Returns a signal that is aborted when the caller has left or has the answer. Its reason is a CallerLeft.
   */
  leaving(response: ServerResponse): AbortSignal {
    const entry = (response as Tracked)[ENTRY];
    return entry ? signalOf(entry) : AbortSignal.abort(new CallerLeft());
  }

  /** Returns whether this error only ended a wait of this response's request, whose caller has left. */
  isLeaving(response: ServerResponse, error: unknown): boolean {
    const reason: unknown = (response as Tracked)[ENTRY]?.leaving?.signal.reason;
    return reason !== undefined && error === reason;
  }

  /** Releases the request's slot during the wait. The request resumes even if all slots are taken then. */
  async #waitFor<T>(entry: Entry, call: Promise<T>, ends: Parameters<Work['waitFor']>[1]): Promise<T> {
    // The request's deadline has passed, or it waits for two calls at the same time.
    if (entry.work !== 'running') return await this.#room.waitFor(call, ends);
    entry.work = 'waiting';
    this.#running -= 1;
    try {
      return await this.#room.waitFor(call, ends);
    } finally {
      // The request resumes unless its deadline passed during the wait.
      if (entry.work === 'waiting') {
        entry.work = 'running';
        this.#running += 1;
      }
    }
  }

  #settle(entry: Entry): void {
    if (entry.work === 'running') this.#running -= 1;
    entry.work = 'none';
    if (entry.closed) this.#entries.delete(entry);
  }

  #end(entry: Entry): void {
    if (entry.closed) return;
    entry.closed = true;
    entry.leaving?.abort(new CallerLeft());
    this.#connections.removeRequest(entry.connection, entry);
    if (entry.work === 'none') this.#entries.delete(entry);
    const { id, request, response, start } = entry;
    const { statusCode: status, writableFinished: isComplete } = response;
    // A sealed answer has status 200 whatever it says, and the host may read this log.
    const code = status < 400 ? undefined : refusalCode(response);
    const isRefused = code === 'OVERLOADED';
    if (isRefused) this.#countRefusal();
    const level = isComplete && (status < 400 || isRefused) ? 'debug' : 'info';
    const isLogged = this.#log.isLevelEnabled(level);
    if (!isLogged && !this.#onEnd) return;
    const route = (request as IncomingMessage & { route?: { path?: string } }).route?.path ?? null;
    const ms = Math.round((performance.now() - start) * 10) / 10;
    this.#onEnd?.({ id, route, isSealed: isWrapped(response), status, code, isComplete, ms });
    if (!isLogged) return;
    this.#log[level](
      {
        request_id: id,
        method: request.method,
        route,
        status,
        ...(code !== undefined && { code }),
        complete: isComplete,
        ms,
      },
      'request',
    );
  }

  #countRefusal(): void {
    this.#refused += 1;
    this.#report ??= setTimeout(() => this.#reportRefused(), REPORT_MS).unref();
  }

  #reportRefused(): void {
    const requests = this.#refused;
    this.#log.warn({ code: 'OVERLOADED', requests }, 'requests were refused: the server was busy');
    this.#refused = 0;
    this.#report = undefined;
  }

  /** Ends requests that were not received, answered or read in time. */
  #sweep(): void {
    const now = performance.now();
    for (const entry of this.#entries) {
      const { start, request, response, fail } = entry;
      if (start > now - this.#timeoutMs) return;
      this.#settle(entry);
      if (entry.closed) continue;
      if (response.headersSent) {
        // A whole answer may wait for the answer to an earlier request of the connection, so it has twice the
        // time.
        if (!isAnswered(response) || start <= now - 2 * this.#timeoutMs) request.socket.destroy();
      } else if (request.complete)
        fail(new ServerError('ANSWER_TIMEOUT', `the request was not answered within ${this.#timeoutMs} ms`));
      else
        fail(new ServerError('REQUEST_TIMEOUT', `the request did not arrive within ${this.#timeoutMs} ms`));
    }
  }
}

/**
 * Returns the signal that ends the request's waits. It is created only when needed, since most requests don't
 * wait for other requests.
 */
function signalOf(entry: Entry): AbortSignal {
  entry.leaving ??= new AbortController();
  if (entry.closed) entry.leaving.abort(new CallerLeft());
  return entry.leaving.signal;
}
