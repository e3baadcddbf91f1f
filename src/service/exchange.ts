/**
 * Performs one exchange with a host of app.yaml, a request and its answer, within limits of time and size.
 * Applications send their requests through upstream.ts.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import { append } from './append.ts';
import { shareOpenFiles } from './open_files.ts';
import { codeOf } from './thrown.ts';
import { presentTask } from './waiting.ts';

/** A request whose parts have all been checked: see upstream_request.ts. */
export interface ExchangeRequest {
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body, but never as text: with a text, Node would encode the headers as UTF-8, though they are
   * Latin-1.
   */
  readonly body: Uint8Array | undefined;
  /** Time limit of the whole exchange in milliseconds, from the DNS query to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Maximum size of the answer's body, in bytes. */
  readonly maxSize: number;
  /** Ends the exchange early. */
  readonly signal: AbortSignal | undefined;
}

export interface ExchangeAnswer {
  /** Any status, since a redirect is an answer like any other. */
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** The body as received: compression is neither requested nor decoded. */
  readonly body: Buffer;
}

/**
 * Sends a request to one host over its connection pool, ignoring all proxy settings. A GET or HEAD is sent
 * again if the host had already closed the idle connection on which it was sent.
 *
 * @throws ExchangeFailed, or the signal's reason once the signal is aborted
 */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeAnswer>;

/**
 * An internal error: the answer is incomplete or missing. upstream_answer.ts turns it into an error of axios.
 */
export class ExchangeFailed extends Error {
  /**
   * `unreachable`: there was no connection, or it ended before the status line; `timeout`: no status line in
   * time; `broken`: the connection ended within the body; `slow body`: the body was not complete in time;
   * `too large`: the body is larger than `maxSize`.
   */
  readonly reason: 'unreachable' | 'timeout' | 'broken' | 'slow body' | 'too large';

  /** @param cause Node's error. Only development logs its message, which may contain addresses */
  constructor(reason: ExchangeFailed['reason'], cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/**
 * Options of the connection pools. They close idle connections before most services would. Unlike Node's
 * global agents, the pools ignore proxies, even with NODE_USE_ENV_PROXY or --use-env-proxy: only the option
 * `proxyEnv` would enable them.
 */
const POOL = { keepAlive: true, timeout: 10_000 };

/**
 * Option that an agent passes to Node to mark a connection as one of an exchange. In development, all other
 * connections must stay on the machine: see `only_loopback.ts`.
 */
export const UPSTREAM = Symbol('sui-enclave/upstream');

/** Number of connections to a host that all tasks share. Requests of callers use other connections. */
export const TASK_SOCKETS_PER_HOST = 4;

/** TLS 1.3, or 1.2 with ECDHE and AEAD (RFC 9325, section 4.2), for forward secrecy. */
const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
  rejectUnauthorized: true,
} as const;

/**
 * Creates the exchange with one host. It has a connection pool for callers, and another for tasks.
 *
 * @param authority PEM of the authorities to trust for this host. Default: the public authorities
 * @param hosts number of all hosts to which the server sends requests; they share its open files
 */
export function createExchange(origin: string, authority: string | undefined, hosts: number): Exchange {
  const { hostname, port, protocol } = new URL(origin);
  const isTls = protocol === 'https:';
  const { socketsPerHost } = shareOpenFiles(hosts);
  const createAgent = (sockets: number) => {
    const pool = { ...POOL, [UPSTREAM]: true, maxSockets: sockets, maxFreeSockets: sockets };
    return isTls
      ? new https.Agent({ ...pool, ...TLS, ...(authority !== undefined && { ca: authority }) })
      : new http.Agent(pool);
  };
  const agentOfCallers = createAgent(socketsPerHost);
  const agentOfTasks = createAgent(TASK_SOCKETS_PER_HOST);
  const send = isTls ? https.request : http.request;
  const host = { hostname: hostname.replace(/^\[|\]$/g, ''), port };
  return async (request) => {
    const { path, method, signal } = request;
    const headers = withLength(request);
    const agent = presentTask() ? agentOfTasks : agentOfCallers;
    const end = performance.now() + request.timeoutMs;
    let { timeoutMs } = request;
    for (;;) {
      signal?.throwIfAborted();
      const clientRequest = send({ ...host, agent, path, method, headers });
      try {
        return await exchange(clientRequest, { ...request, timeoutMs });
      } catch (error) {
        if (!wasClosed(clientRequest, error)) throw error;
        timeoutMs = Math.max(1, end - performance.now());
      }
    }
  };
}

/**
 * Adds the length of the body. Node would send the body of a GET, HEAD or DELETE without its length, and the
 * host would take the body for the next request of the connection (RFC 9112, section 6.3).
 */
function withLength({ headers, body }: ExchangeRequest): ExchangeRequest['headers'] {
  return body === undefined ? headers : { ...headers, 'content-length': String(body.byteLength) };
}

/**
 * Returns whether a repeatable request was sent on a kept connection that the host had closed already (RFC
 * 9112, section 9.3.1). Each repetition uses another connection. A request on a new connection is not
 * repeated.
 */
function wasClosed({ reusedSocket, method }: http.ClientRequest, error: unknown): boolean {
  if (!reusedSocket || (method !== 'GET' && method !== 'HEAD') || !(error instanceof ExchangeFailed))
    return false;
  const code = codeOf(error.cause);
  return error.reason === 'unreachable' && (code === 'ECONNRESET' || code === 'EPIPE');
}

/**
 * Maximum number of interim answers (RFC 9110, section 15.2): each costs time, and hosts send only one or
 * two.
 */
const MAX_INTERIM = 16;

/** Sends a request's body and receives the answer. */
function exchange(
  clientRequest: http.ClientRequest,
  { body, timeoutMs, maxSize, signal }: ExchangeRequest,
): Promise<ExchangeAnswer> {
  return new Promise((resolve, reject) => {
    let state: 'sent' | 'receiving' | 'done' = 'sent';
    const finish = () => {
      state = 'done';
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    };
    const stop = (error: unknown) => {
      finish();
      reject(error);
      // Close the connection, since the rest of the answer may still arrive on it.
      clientRequest.destroy();
    };
    const abort = () => stop(signal?.reason);
    const fail = (
      earlyReason: ExchangeFailed['reason'],
      lateReason: ExchangeFailed['reason'],
      cause?: unknown,
    ) => {
      if (state !== 'done') stop(new ExchangeFailed(state === 'sent' ? earlyReason : lateReason, cause));
    };
    const failConnection = (cause?: unknown) => fail('unreachable', 'broken', withoutBytes(cause));
    const timer = setTimeout(() => fail('timeout', 'slow body'), timeoutMs);
    signal?.addEventListener('abort', abort);
    clientRequest.on('error', failConnection);
    // There is no error if the answer switches to another protocol.
    clientRequest.on('close', failConnection);
    let interim = 0;
    clientRequest.on('information', () => {
      if (++interim > MAX_INTERIM) failConnection();
    });
    clientRequest.on('response', (answer) => {
      state = 'receiving';
      let buffer: Buffer = Buffer.alloc(0);
      let size = 0;
      answer.on('error', failConnection);
      answer.on('data', (chunk: Buffer) => {
        if (size + chunk.length > maxSize) {
          fail('too large', 'too large');
          return;
        }
        buffer = append(buffer, size, chunk, maxSize);
        size += chunk.length;
      });
      answer.on('end', () => {
        if (state === 'done') return;
        finish();
        // A host that answers before it has read the whole request could keep the connection open forever.
        if (!clientRequest.writableFinished) clientRequest.destroy();
        resolve({
          status: answer.statusCode as number,
          headers: answer.headers,
          body: buffer.subarray(0, size),
        });
      });
    });
    clientRequest.end(body);
  });
}

/**
 * Removes the bytes that the parser could not read and attached to its error: a host may have repeated the
 * request in them.
 */
function withoutBytes(cause: unknown): unknown {
  if (cause instanceof Error && 'rawPacket' in cause) delete cause.rawPacket;
  return cause;
}
