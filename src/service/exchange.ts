/**
 * One bounded exchange with a host of app.yaml: a request, and its answer. Applications send their requests
 * by upstream.ts.
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
 * Sends a request to one host over its connection pool, ignoring all proxy settings. GET and HEAD are sent
 * again if the host has closed the kept connection meanwhile.
 *
 * @throws ExchangeFailed; the signal's reason
 */
export type Exchange = (request: ExchangeRequest) => Promise<ExchangeAnswer>;

/**
 * An internal error: the answer is incomplete or missing. upstream_answer.ts turns it into an error of axios.
 */
export class ExchangeFailed extends Error {
  /**
   * `unreachable`: there was no connection, or it ended before the status line; `timeout`: no status line in
   * time; `broken`: the connection ended within the body; `slow body`: the body was not complete in time.
   */
  readonly reason: 'unreachable' | 'timeout' | 'broken' | 'slow body' | 'too large';

  /** @param cause Node's error, for development. Its message may contain addresses */
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
 * Marks the connections of an exchange, among the options that its agent hands to Node. In development, all
 * other connections must stay on the machine: see `only_loopback.ts`.
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
 * @param authority PEM of the authorities to trust for this host. Default: the public authorities
 * @param hosts number of hosts that the server asks in all, which share its open files
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
      const sent = send({ ...host, agent, path, method, headers });
      try {
        return await exchange(sent, { ...request, timeoutMs });
      } catch (error) {
        if (!wasClosed(sent, error)) throw error;
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
  sent: http.ClientRequest,
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
      sent.destroy();
    };
    const abort = () => stop(signal?.reason);
    const fail = (whenSent: ExchangeFailed['reason'], later: ExchangeFailed['reason'], cause?: unknown) => {
      if (state !== 'done') stop(new ExchangeFailed(state === 'sent' ? whenSent : later, cause));
    };
    const broke = (cause?: unknown) => fail('unreachable', 'broken', withoutBytes(cause));
    const timer = setTimeout(() => fail('timeout', 'slow body'), timeoutMs);
    signal?.addEventListener('abort', abort);
    sent.on('error', broke);
    // There is no error if the answer switches to another protocol.
    sent.on('close', broke);
    let interim = 0;
    sent.on('information', () => {
      if (++interim > MAX_INTERIM) broke();
    });
    sent.on('response', (answer) => {
      state = 'receiving';
      let buffer: Buffer = Buffer.alloc(0);
      let size = 0;
      answer.on('error', broke);
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
        // The host may have answered without reading the whole request, and would keep the connection without
        // limit.
        if (!sent.writableFinished) sent.destroy();
        resolve({
          status: answer.statusCode as number,
          headers: answer.headers,
          body: buffer.subarray(0, size),
        });
      });
    });
    sent.end(body);
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
