import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Logger } from '../log.ts';
import { AnswerTimeout, Overloaded, RequestTimeout } from './errors.ts';

/** How often deadlines are looked at. */
const SWEEP_MS = 250;
/**
 * Requests of one connection that may wait for an answer. Clients send one at a time; thousands fit into one
 * read, and each costs far more memory than its bytes.
 */
const MAX_PIPELINED = 8;

interface Entry {
  readonly id: string;
  readonly start: number;
  readonly request: Request;
  readonly response: Response;
  readonly next: NextFunction;
  /** Whether its handler is at work: longer than the caller waits, where that one leaves. */
  running: boolean;
  closed: boolean;
}

/**
 * The requests that are being answered: each with an id of ours, a deadline and a line in the log when it
 * ends. All in one place and with one listener, since that is most of what a request costs here.
 */
export class InFlight {
  readonly #log: Logger;
  readonly #lines: Logger;
  readonly #timeoutMs: number;
  /** In the order of their deadlines. */
  readonly #entries = new Set<Entry>();
  readonly #waiting = new WeakMap<Duplex, number>();
  #running = 0;

  constructor(log: Logger, timeoutMs: number) {
    this.#log = log;
    // The lines below have fixed members, none of them the caller's: to look for secrets in them would cost
    // more than any other step of a request.
    this.#lines = log.child({}, { redact: [] });
    this.#timeoutMs = timeoutMs;
    setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /**
   * Gives the request its id (header `x-request-id`) and prints a line when it ends: at level info where it
   * failed, at debug where it did not. Of a request only the method and the route are printed: paths,
   * queries and bodies are the caller's and may hold anything.
   */
  track(): RequestHandler {
    return (request, response, next) => {
      const { socket } = request;
      // What was read together with the request that was one too many.
      if (socket.destroyed) return;
      const waiting = (this.#waiting.get(socket) ?? 0) + 1;
      if (waiting > MAX_PIPELINED) {
        socket.destroy();
        return;
      }
      this.#waiting.set(socket, waiting);
      const [id, start] = [randomUUID(), performance.now()];
      const entry: Entry = { id, start, request, response, next, running: false, closed: false };
      response.setHeader('x-request-id', id);
      response.locals['entry'] = entry;
      response.locals['log'] = () => this.#log.child({ request_id: id });
      response.on('close', () => this.#end(entry));
      this.#entries.add(entry);
      next();
    };
  }

  /**
   * Lets at most `max` handlers work at a time and answers 503 beyond: what can't be served soon is refused at
   * once. A handler counts until it has come to an end or its deadline has passed, whether its caller waits or
   * not. There is no limit by address, since behind the enclave's bridge every peer is 127.0.0.1.
   */
  limit(max: number): (handler: RequestHandler) => RequestHandler {
    return (handler) => async (request, response, next) => {
      if (this.#running >= max) throw new Overloaded(`the server is busy with ${max} requests: try again`);
      const entry: Entry = response.locals['entry'];
      entry.running = true;
      this.#running += 1;
      try {
        await handler(request, response, next);
      } finally {
        this.#settle(entry);
      }
    };
  }

  #settle(entry: Entry): void {
    if (!entry.running) return;
    entry.running = false;
    this.#running -= 1;
    if (entry.closed) this.#entries.delete(entry);
  }

  /** The last answer that a connection still waits for, its request having arrived whole. */
  pendingOn(socket: Duplex): Response | undefined {
    let last: Response | undefined;
    for (const { request, response, closed } of this.#entries) {
      if (!closed && request.complete && request.socket === socket) last = response;
    }
    return last;
  }

  #end(entry: Entry): void {
    entry.closed = true;
    const { socket } = entry.request;
    this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1);
    if (!entry.running) this.#entries.delete(entry);
    const { id, request, response, start } = entry;
    const level = response.statusCode < 400 && response.writableFinished ? 'debug' : 'info';
    if (!this.#lines.isLevelEnabled(level)) return;
    this.#lines[level](
      {
        request_id: id,
        method: request.method,
        route: request.route?.path ?? null,
        status: response.statusCode,
        complete: response.writableFinished,
        ms: Math.round((performance.now() - start) * 10) / 10,
      },
      'request',
    );
  }

  /** Ends what has neither arrived nor been answered in time. */
  #sweep(): void {
    const oldest = performance.now() - this.#timeoutMs;
    for (const entry of this.#entries) {
      const { start, request, response, next } = entry;
      if (start > oldest) return;
      this.#settle(entry);
      if (response.headersSent || entry.closed) continue;
      if (request.complete) next(new AnswerTimeout(`no answer within ${this.#timeoutMs} ms`));
      else next(new RequestTimeout(`the request did not arrive within ${this.#timeoutMs} ms`));
    }
  }
}

/** The log of the request that this response answers, with its id. */
export function logOf(response: Response): Logger {
  return response.locals['log']();
}
