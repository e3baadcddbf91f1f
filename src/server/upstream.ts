/** The only way to send requests to a host of app.yaml, for applications and for probes of their endpoints. */
import { isUtf8 } from 'node:buffer';
import * as http from 'node:http';
import * as https from 'node:https';
import type { Manifest } from '../app.ts';
import { ApplicationMistake } from '../errors.ts';
import { isTimeout, TIMEOUT_RANGE } from '../fetch.ts';
import { codeOf } from './log.ts';
import { shareOpenFiles } from './open_files.ts';

export interface UpstreamRequest {
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Must include `content-type` if there is a body. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** For the whole exchange in milliseconds, from the DNS query to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Maximum size of the answer's body, in bytes. */
  readonly maxSize: number;
}

export interface UpstreamAnswer {
  /** Any status: a redirect is an answer like any other. */
  readonly status: number;
  /** The body as received: compression is neither requested nor decoded. */
  readonly body: Buffer;
  /** From `Retry-After`, where it is a number of seconds (RFC 9110, section 10.2.3). */
  readonly retryAfterSeconds?: number;
}

/**
 * Sends a request to one host over its connection pool, ignoring all proxy settings. GET and HEAD are sent again if
 * the host has closed the kept connection meanwhile.
 *
 * @param path path and query, percent-encoded where necessary: `/v1/prices?pair=SUI-USD`
 * @throws ExchangeFailed; ApplicationMistake if the path, a header or a bound is invalid
 */
export type Upstream = (path: string, request: UpstreamRequest) => Promise<UpstreamAnswer>;

/**
 * Reports that there is no complete answer. Each application translates it into its own error, which keeps it as
 * its `cause`. It contains nothing of the request, whose URL may contain a key.
 */
export class ExchangeFailed extends Error {
  /**
   * `unreachable`: no connection, or it ended before the status line; `timeout`: no status line in time;
   * `broken`: the connection ended within the body; `slow body`: the body was not complete in time.
   */
  readonly reason: 'unreachable' | 'timeout' | 'broken' | 'slow body' | 'too large';
  /**
   * The error code, for the log: of the DNS query, the connection, TLS or the HTTP parser, such
   * as `ENOTFOUND`, `ECONNREFUSED`, `CERT_HAS_EXPIRED` or `HPE_INVALID_CONSTANT`. Undefined for a time-out.
   */
  readonly code: string | undefined;

  /** @param cause of Node, for development: its message may contain addresses and bytes of the answer */
  constructor(reason: ExchangeFailed['reason'], cause?: unknown) {
    super(`no complete answer from an upstream: ${reason}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.code = codeOf(cause);
  }
}

/**
 * Idle connections are closed before most services would close them. Unlike Node's global agents, these ignore
 * proxies, even with NODE_USE_ENV_PROXY or --use-env-proxy: only the option `proxyEnv` would enable them.
 */
const POOL = { keepAlive: true, timeout: 10_000 };

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
 * @param origins for development and tests: the origin to use in place of `https://<host>`
 * @param hosts how many hosts the server asks in all. Default: the endpoints
 * @returns the upstream of a host; throws ApplicationMistake for a host that is not in app.yaml
 */
export function createUpstreams(
  { endpoints, authorities = {} }: Pick<Manifest, 'endpoints' | 'authorities'>,
  origins: Readonly<Record<string, string>> = {},
  hosts = endpoints.length,
): (host: string) => Upstream {
  const upstreams = new Map(
    endpoints.map((host) => [
      host,
      createUpstream(origins[host] ?? `https://${host}`, authorities[host], hosts),
    ]),
  );
  return (host) => {
    const upstream = upstreams.get(host);
    if (!upstream) throw new ApplicationMistake(`${host} is not among the endpoints of app.yaml`);
    return upstream;
  };
}

/**
 * @param authority PEM of the authorities to trust for this host. Default: the public authorities
 * @param hosts how many hosts the server asks in all: they share its open files
 */
export function createUpstream(origin: string, authority?: string, hosts = 1): Upstream {
  const isTls = origin.startsWith('https:');
  const { socketsPerHost } = shareOpenFiles(hosts);
  const pool = { ...POOL, maxSockets: socketsPerHost, maxFreeSockets: socketsPerHost };
  const agent = isTls
    ? new https.Agent({ ...pool, ...TLS, ...(authority !== undefined && { ca: authority }) })
    : new http.Agent(pool);
  const send = isTls ? https.request : http.request;
  return async (path, request) => {
    const { hostname, port, pathname, search } = urlOf(origin, path);
    const headers = headersOf(request);
    requireBounds(request);
    const { method = 'GET' } = request;
    const options = {
      agent,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: pathname + search,
      method,
      headers,
    };
    const end = performance.now() + request.timeoutMs;
    let { timeoutMs } = request;
    for (;;) {
      const sent = send(options);
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
 * Whether the host had closed a kept connection when a request was sent on it that can be repeated (RFC 9112, section
 * 9.3.1). Each repetition uses another connection, and a new one is the last.
 */
function wasClosed({ reusedSocket, method }: http.ClientRequest, error: unknown): boolean {
  if (!reusedSocket || (method !== 'GET' && method !== 'HEAD') || !(error instanceof ExchangeFailed))
    return false;
  return error.reason === 'unreachable' && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/**
 * Receives the answer to a request, with no HTTP client library: one would cost as much as all other work for a request
 * to this server.
 */
function exchange(
  sent: http.ClientRequest,
  { body, timeoutMs, maxSize }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  return new Promise((resolve, reject) => {
    let state: 'sent' | 'receiving' | 'done' = 'sent';
    const fail = (whenSent: ExchangeFailed['reason'], later: ExchangeFailed['reason'], cause?: unknown) => {
      if (state === 'done') return;
      const reason = state === 'sent' ? whenSent : later;
      state = 'done';
      clearTimeout(timer);
      reject(new ExchangeFailed(reason, cause));
      // Closes the connection: the rest of the answer may still arrive on it.
      sent.destroy();
    };
    const broke = (cause?: unknown) => fail('unreachable', 'broken', cause);
    const timer = setTimeout(() => fail('timeout', 'slow body'), timeoutMs);
    sent.on('error', broke);
    // Without an error if the answer switches to another protocol.
    sent.on('close', broke);
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
        state = 'done';
        clearTimeout(timer);
        // The host may have answered without reading the whole request, and would keep the connection for ever.
        if (!sent.writableFinished) sent.destroy();
        const whole = { status: answer.statusCode as number, body: buffer.subarray(0, size) };
        const retryAfter = answer.headers['retry-after'] ?? '';
        resolve(
          /^[0-9]{1,6}$/.test(retryAfter) ? { ...whole, retryAfterSeconds: Number(retryAfter) } : whole,
        );
      });
    });
    sent.end(body);
  });
}

/**
 * Copies a chunk behind the first `size` bytes: the host chooses the size of chunks, and each one kept would cost
 * hundreds of bytes. @returns the buffer, or a larger one of `maxSize` bytes at most
 */
function append(buffer: Buffer, size: number, chunk: Buffer, maxSize: number): Buffer {
  // Most answers are one chunk.
  if (size === 0) return chunk;
  const end = size + chunk.length;
  const target = end <= buffer.length ? buffer : Buffer.allocUnsafeSlow(Math.min(2 * end, maxSize));
  if (target !== buffer) buffer.copy(target, 0, 0, size);
  chunk.copy(target, size);
  return target;
}

/** Rejects a path that the URL parser would change, since the request would differ from what the code says. */
function urlOf(origin: string, path: string): URL {
  const url = URL.parse(origin + path);
  const [pathname] = path.split('?', 1);
  if (url === null || !path.startsWith('/') || /[#\s]/.test(path) || url.pathname !== pathname) {
    throw new ApplicationMistake(
      'the path of an upstream request must start with /, be percent-encoded and have neither dot segments nor a fragment',
    );
  }
  return url;
}

function headersOf({ headers = {}, body }: UpstreamRequest): Record<string, string> {
  try {
    for (const [name, value] of Object.entries(headers)) {
      http.validateHeaderName(name);
      http.validateHeaderValue(name, value);
    }
  } catch {
    throw new ApplicationMistake(
      'a header of an upstream request has a name or value that is invalid in HTTP',
    );
  }
  const lower = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  if (body !== undefined && lower['content-type'] === undefined) {
    throw new ApplicationMistake('an upstream request with a body needs a content-type among its headers');
  }
  return {
    accept: '*/*',
    'user-agent': 'sui-enclave',
    ...lower,
    'accept-encoding': 'identity',
  };
}

/** Every exchange must be bounded in time and size. */
function requireBounds({ timeoutMs, maxSize }: UpstreamRequest): void {
  if (!isTimeout(timeoutMs)) throw new ApplicationMistake(`timeoutMs must be ${TIMEOUT_RANGE}`);
  if (!Number.isSafeInteger(maxSize) || maxSize < 0) {
    throw new ApplicationMistake('maxSize must be an integer number of bytes');
  }
}

/** The parsed body; undefined if it is not JSON in UTF-8. */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
