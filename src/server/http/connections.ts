import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that may wait for an answer. Clients send one at a time; thousands fit into one read,
 * and each costs far more memory than its bytes.
 */
const MAX_PIPELINED = 8;

/** What the server knows of an open connection. */
export interface Connection {
  readonly socket: Socket;
  /** By performance.now(). */
  readonly openedAt: number;
  /** All that have begun. */
  requests: number;
  /** Requests whose headers have arrived and whose answer has not left yet. */
  pending: number;
  /** The latest of them. */
  request: IncomingMessage | undefined;
  /** Bytes read when the last answer had left: more than that is the beginning of a request. */
  bytesAtRest: number;
}

/**
 * The open connections, at most `max` of them. A new one is always accepted: it takes the place of the one that
 * was idle longest, else of the one whose request has been incomplete longest. A connection that is being
 * answered is never ended for another. Behind the enclave's bridge every peer is 127.0.0.1, so there is no
 * limit by address.
 */
export class Connections {
  readonly #max: number;
  readonly #open = new Map<unknown, Connection>();
  /** Between two requests; in the order in which they became idle. */
  readonly #idle = new Set<Connection>();
  /** With a request that may be incomplete, or has yet to come; in the order in which it began, or they did. */
  readonly #receiving = new Set<Connection>();
  /** Of all connections. */
  #pending = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  of(request: IncomingMessage): Connection | undefined {
    return this.#open.get(request.socket);
  }

  /**
   * Whether no further request of the connection is accepted: it has ended, or too many of its requests wait for
   * an answer. Where more requests wait than there may be connections, one of a connection is enough.
   */
  isFull(socket: unknown): boolean {
    const connection = this.#open.get(socket);
    return !connection || connection.pending >= (this.#pending < this.#max ? MAX_PIPELINED : 1);
  }

  opened(socket: Socket): void {
    if (this.#open.size >= this.#max && !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const connection: Connection = {
      socket,
      openedAt: performance.now(),
      requests: 0,
      pending: 0,
      request: undefined,
      bytesAtRest: 0,
    };
    this.#open.set(socket, connection);
    // Not as idle: where nobody else is, newcomers would end each other before they can say anything.
    this.#receiving.add(connection);
    socket.once('close', () => this.#forget(connection));
  }

  /** A request's headers have arrived. */
  began(connection: Connection, request: IncomingMessage): void {
    connection.requests += 1;
    connection.pending += 1;
    this.#pending += 1;
    connection.request = request;
    this.#idle.delete(connection);
    this.#receiving.delete(connection);
    this.#receiving.add(connection);
  }

  /** A request's answer has left, or will never leave. */
  ended(connection: Connection): void {
    connection.pending -= 1;
    this.#pending -= 1;
    if (connection.pending > 0 || !this.#open.has(connection.socket)) return;
    connection.request = undefined;
    connection.bytesAtRest = connection.socket.bytesRead;
    this.#receiving.delete(connection);
    this.#idle.add(connection);
  }

  /** Each step either ends a connection or moves one that no later call looks at again before its next request. */
  #makeRoom(): boolean {
    for (const connection of this.#idle) {
      if (connection.socket.bytesRead === connection.bytesAtRest) return this.#end(connection);
      this.#idle.delete(connection);
      this.#receiving.add(connection);
    }
    for (const connection of this.#receiving) {
      const { pending, request } = connection;
      // Requests before the latest have arrived whole.
      if (pending < 2 && !request?.complete) return this.#end(connection);
      this.#receiving.delete(connection);
    }
    return false;
  }

  #end(connection: Connection): true {
    this.#forget(connection);
    connection.socket.destroy();
    return true;
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection.socket);
    this.#idle.delete(connection);
    this.#receiving.delete(connection);
  }
}

/**
 * The class of a server's requests. One too many of its connection looks like an upgrade that nobody listens for,
 * so that Node stops parsing and ends the connection. Ended later, in a handler, it would cost the memory of all
 * requests that were read together, until the event loop comes to its end.
 */
export function createRequestClass(connections: Connections): typeof IncomingMessage {
  return class extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      if (connections.isFull(socket)) Object.defineProperty(this, 'upgrade', { get: () => true, set() {} });
    }
  };
}
