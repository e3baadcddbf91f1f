import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ServerError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection, Connections } from './connections.ts';

/** How often deadlines are checked. */
const SWEEP_MS = 250;
/**
 * A connection is closed after so many answers, and after its next one when it is older than this, so that none is
 * kept for ever. (Node's own `maxRequestsPerSocket` announces the end, but leaves the connection open.)
 */
const MAX_REQUESTS_PER_CONNECTION = 1000;
const MAX_CONNECTION_AGE_MS = 10 * 60_000;

interface Entry {
  readonly id: string;
  readonly start: number;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly fail: (error: unknown) => void;
  /** Whether its handler is at work, which may last longer than its caller waits. */
  running: boolean;
  closed: boolean;
}

/**
 * The requests that are being answered, each with a generated id, a deadline and a log line when it ends. All in
 * one place and with one listener, since that is most of what a request costs here.
 */
export class InFlight {
  readonly #log: Logger;
  readonly #connections: Connections;
  readonly #timeoutMs: number;
  readonly #maxRunning: number;
  /** In the order of their deadlines. */
  readonly #entries = new Set<Entry>();
  readonly #byResponse = new WeakMap<ServerResponse, Entry>();
  readonly #sweeping: NodeJS.Timeout;
  #running = 0;

  constructor(log: Logger, connections: Connections, limits: { timeoutMs: number; maxRunning: number }) {
    this.#log = log;
    this.#connections = connections;
    this.#timeoutMs = limits.timeoutMs;
    this.#maxRunning = limits.maxRunning;
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /** Requests that are neither answered nor given up, and those whose handler is at work. */
  get size(): number {
    return this.#entries.size;
  }

  stop(): void {
    clearInterval(this.#sweeping);
  }

  /**
   * Gives the request its id (header `x-request-id`) and prints a line when it ends: at level info where it
   * failed, at debug where it did not. Of a request only the method and the route are printed: paths,
   * queries and bodies are the caller's and may hold anything.
   *
   * @param fail answers the request with an error, called when its deadline has passed
   * @returns false when the request must not be handled: its connection has ended
   */
  track(request: IncomingMessage, response: ServerResponse, fail: (error: unknown) => void): boolean {
    const connection = this.#connections.of(request);
    if (!connection || request.socket.destroyed) return false;
    this.#connections.began(connection, request);
    const [id, start] = [randomUUID(), performance.now()];
    const entry: Entry = { id, start, request, response, connection, fail, running: false, closed: false };
    response.setHeader('x-request-id', id);
    const isOld = start - connection.openedAt > MAX_CONNECTION_AGE_MS;
    if (isOld || connection.requests >= MAX_REQUESTS_PER_CONNECTION) response.shouldKeepAlive = false;
    response.on('close', () => this.#end(entry));
    this.#entries.add(entry);
    this.#byResponse.set(response, entry);
    return true;
  }

  /** The log for the request of this response, with the request's id. */
  logOf(response: ServerResponse): Logger {
    const entry = this.#byResponse.get(response);
    return entry ? this.#log.child({ request_id: entry.id }) : this.#log;
  }

  /**
   * Runs a handler, at most `maxRunning` of them at a time. A handler counts until it has come to an end or its
   * deadline has passed, whether its caller waits or not. A request should get here only when it has arrived
   * whole: else those that never do would keep others out.
   *
   * @throws OVERLOADED at once: what can't be served soon is refused
   */
  async work(response: ServerResponse, handler: () => Promise<void> | void): Promise<void> {
    const entry = this.#byResponse.get(response);
    // Its caller has left, or its deadline has passed.
    if (!entry || entry.closed || response.headersSent) return;
    if (this.#running >= this.#maxRunning) {
      throw new ServerError('OVERLOADED', `the server is busy with ${this.#maxRunning} requests: try again`, {
        retryAfterSeconds: 1,
      });
    }
    entry.running = true;
    this.#running += 1;
    try {
      await handler();
    } finally {
      this.#settle(entry);
    }
  }

  #settle(entry: Entry): void {
    if (!entry.running) return;
    entry.running = false;
    this.#running -= 1;
    if (entry.closed) this.#entries.delete(entry);
  }

  /** The last answer that a connection still waits for, its request having arrived whole. */
  pendingOn(socket: Duplex): ServerResponse | undefined {
    let last: ServerResponse | undefined;
    for (const { request, response, closed } of this.#entries) {
      if (!closed && request.complete && request.socket === socket) last = response;
    }
    return last;
  }

  #end(entry: Entry): void {
    entry.closed = true;
    this.#connections.ended(entry.connection);
    if (!entry.running) this.#entries.delete(entry);
    const { id, request, response, start } = entry;
    const level = response.statusCode < 400 && response.writableFinished ? 'debug' : 'info';
    if (!this.#log.isLevelEnabled(level)) return;
    const { route } = request as IncomingMessage & { route?: { path?: string } };
    this.#log[level](
      {
        request_id: id,
        method: request.method,
        route: route?.path ?? null,
        status: response.statusCode,
        complete: response.writableFinished,
        ms: Math.round((performance.now() - start) * 10) / 10,
      },
      'request',
    );
  }

  /** Ends what has not arrived, was not answered or was not read in time. */
  #sweep(): void {
    const now = performance.now();
    for (const entry of this.#entries) {
      const { start, request, response, fail } = entry;
      if (start > now - this.#timeoutMs) return;
      this.#settle(entry);
      if (entry.closed) continue;
      if (response.headersSent) {
        // The answer may wait for that of an earlier request, which has the same time again.
        if (start <= now - 2 * this.#timeoutMs) request.socket.destroy();
      } else if (request.complete)
        fail(new ServerError('ANSWER_TIMEOUT', `no answer within ${this.#timeoutMs} ms`));
      else
        fail(new ServerError('REQUEST_TIMEOUT', `the request did not arrive within ${this.#timeoutMs} ms`));
    }
  }
}
