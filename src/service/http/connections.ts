import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Listed, OrderedList } from '../ordered_list.ts';
import { BoundedRequest } from './body_pieces.ts';

/**
 * Maximum number of pipelined requests of one connection. Clients send one request at a time. Thousands of
 * requests fit into one read, and each costs far more memory than its bytes.
 */
const MAX_PIPELINED = 8;

/** A request whose headers have arrived and whose answer is not sent yet. */
export interface Pending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The state of an open connection. */
export interface Connection extends Listed<Connection> {
  readonly socket: Socket;
  /** Time at which the connection was opened, by performance.now(). */
  readonly openedAt: number;
  /** Number of requests so far. */
  requests: number;
  /** Requests without an answer, the oldest first. */
  readonly pending: Pending[];
  /** The latest request whose answer was sent, if it was sent before the request's body had arrived. */
  answered: IncomingMessage | undefined;
  /** Number of bytes read when the last answer was sent. Further bytes are the beginning of a request. */
  bytesAtRest: number;
}

/**
 * The open connections, at most `max` of them at the end of each turn of the event loop. At the limit, a new
 * connection replaces the one that has been idle longest, or else the one whose request has been incomplete
 * longest. If all connections have complete requests, the newest is closed. Behind the enclave's bridge,
 * every peer is 127.0.0.1, so there is no limit per address.
 */
export class Connections {
  readonly #max: number;
  readonly #open = new Map<unknown, Connection>();
  /** Connections between two requests, in the order in which they became idle. */
  readonly #idle = new OrderedList<Connection>();
  /**
   * Connections whose request is incomplete or has not begun. They are in the order in which the request
   * began, or else the connection.
   */
  readonly #receiving = new OrderedList<Connection>();
  /** Number of pending requests of all connections. */
  #pending = 0;
  /**
   * Timer that closes connections beyond the maximum at the end of the current turn; undefined if not set.
   */
  #trimming: NodeJS.Immediate | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Number of requests that wait for their answer. */
  get pending(): number {
    return this.#pending;
  }

  /** Returns the connection of a request; undefined if it was closed. */
  find(request: IncomingMessage): Connection | undefined {
    return this.#open.get(request.socket);
  }

  /**
   * Returns whether the connection must not send further requests: it is closed, or too many of its requests
   * wait for an answer. While more requests wait than connections are allowed, the limit is one per
   * connection.
   */
  isFull(socket: unknown): boolean {
    const connection = this.#open.get(socket);
    return !connection || connection.pending.length >= (this.#pending < this.#max ? MAX_PIPELINED : 1);
  }

  /** Adds a new connection. */
  addConnection(socket: Socket): void {
    const connection: Connection = {
      socket,
      openedAt: performance.now(),
      requests: 0,
      pending: [],
      answered: undefined,
      bytesAtRest: 0,
      list: undefined,
      before: undefined,
      after: undefined,
    };
    this.#open.set(socket, connection);
    // If a new connection counted as idle, new connections would replace each other before they could send
    // anything.
    this.#receiving.add(connection);
    socket.once('close', () => {
      this.#forget(connection);
      for (const pending of [...connection.pending]) abandon(pending);
    });
    if (this.#open.size <= this.#max) return;
    // Requests that have arrived are read in this turn. Their connections only seem to be idle until then.
    this.#trimming ??= setImmediate(() => {
      this.#trimming = undefined;
      while (this.#open.size > this.#max) this.#end(this.#chooseToClose());
    });
  }

  /** Records that a request's headers have arrived. */
  addRequest(connection: Connection, pending: Pending): void {
    connection.requests += 1;
    connection.pending.push(pending);
    this.#pending += 1;
    this.#receiving.add(connection);
  }

  /** Records that a request's answer was sent, or will never be. */
  removeRequest(connection: Connection, pending: Pending): void {
    const { request } = pending;
    connection.pending.splice(connection.pending.indexOf(pending), 1);
    connection.answered = request.complete ? undefined : request;
    this.#pending -= 1;
    if (connection.pending.length > 0 || !this.#open.has(connection.socket)) return;
    connection.bytesAtRest = connection.socket.bytesRead;
    this.#idle.add(connection);
  }

  /**
   * Returns whether all requests of a connection are answered, and the body of the last one is incomplete. A
   * fault in the rest of that body needs no answer.
   */
  isAnswered(socket: unknown): boolean {
    const { pending, answered } = this.#open.get(socket) ?? {};
    return pending?.length === 0 && answered?.complete === false;
  }

  /** Returns the last unsent answer to a complete request of a connection. */
  pendingOn(socket: unknown): ServerResponse | undefined {
    return this.#open.get(socket)?.pending.findLast(({ request }) => request.complete)?.response;
  }

  /** Closes the connections that have sent nothing yet: Node does not count them as idle. */
  closeUnused(): void {
    for (const connection of this.#receiving) {
      if (connection.requests === 0 && connection.socket.bytesRead === 0) this.#end(connection);
    }
  }

  /**
   * Closes all connections, even those that Node no longer counts as connections of its server, such as after
   * CONNECT.
   */
  closeAll(): void {
    for (const connection of this.#open.values()) this.#end(connection);
  }

  /**
   * Chooses the connection that gives way to a new one: the newest, if all have complete requests. A
   * connection that is not chosen leaves the list, so that no later call visits it before its next request.
   */
  #chooseToClose(): Connection {
    for (let connection = this.#idle.first; connection; connection = this.#idle.first) {
      if (connection.socket.bytesRead === connection.bytesAtRest) return connection;
      this.#receiving.add(connection);
    }
    for (let connection = this.#receiving.first; connection; connection = this.#receiving.first) {
      const { pending } = connection;
      // All requests but the latest have arrived completely.
      if (pending.length < 2 && !pending[0]?.request.complete) return connection;
      this.#receiving.delete(connection);
    }
    return [...this.#open.values()].at(-1) as Connection;
  }

  #end(connection: Connection): void {
    this.#forget(connection);
    connection.socket.destroy();
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection.socket);
    connection.list?.delete(connection);
  }
}

/**
 * Ends a request of a closed connection. Node does so for the answer whose turn it is, but not for those that
 * wait behind it, nor for any request of a connection that it stopped parsing (an upgrade, CONNECT).
 */
function abandon({ request, response }: Pending): void {
  if (!response.socket) response.emit('close');
  if (!request.destroyed) request.destroy(new Error('the connection was closed'));
}

/**
 * Creates the class of a server's requests. A request beyond its connection's limit claims to be an upgrade
 * without a listener, so that Node stops parsing and closes the connection. Closing it later, in a handler,
 * would first cost the memory of all requests in the same read.
 */
export function createRequestClass(connections: Connections): typeof IncomingMessage {
  return class extends BoundedRequest {
    constructor(socket: Socket) {
      super(socket);
      if (connections.isFull(socket)) Object.defineProperty(this, 'upgrade', { get: () => true, set() {} });
    }
  };
}
