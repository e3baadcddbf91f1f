/**
 * Sends one request, bounded in time and size, in Node and browsers. Every client of this project uses it.
 */
import { platformFetch } from '#platform_fetch';

export { platformFetch };

export interface Bounds {
  /** The function that sends the request. Default: `platformFetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Time limit of the whole exchange, including the body of the response, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum size of the response body, in bytes. */
  readonly maxSize: number;
  /** Ends the exchange early, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The header that names the key that signed an answer, in hex. The header is only a hint, since anyone on the
 * path can write it.
 */
export const ENCLAVE_KEY_HEADER = 'x-enclave-key';

interface Outcome {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  /** The value of `Retry-After`, if it is a number of seconds (RFC 9110, section 10.2.3). */
  readonly retryAfterSeconds?: number | undefined;
  /** The value of `X-Enclave-Key`, if it is 32 bytes in hexadecimal. */
  readonly enclaveKey?: string;
}

export interface TextAnswer extends Outcome {
  readonly text: string;
}

export interface BytesAnswer extends Outcome {
  readonly bytes: Uint8Array;
  /** The `Content-Type`, or null. */
  readonly type: string | null;
}

/** An internal error, which each client turns into its own error with a code. */
export class NoAnswerError extends Error {
  /** `broken`: the response began, but did not complete. */
  readonly reason: 'unreachable' | 'timeout' | 'too large' | 'broken';

  constructor(reason: NoAnswerError['reason'], options?: ErrorOptions) {
    super(`no answer: ${reason}`, options);
    this.reason = reason;
  }
}

/** Reasons for an incomplete answer, as far as the platform gives them. */
export const UNREACHABLE = {
  /** There was no complete answer within `timeoutMs`, or no connection within the platform's own limit. */
  timeout: 'it took too long',
  dns: 'its host name was not found',
  /** The connection was refused or reset, there is no route, or the peer doesn't speak HTTP. */
  connection: 'the connection failed',
  /** The certificate is not valid for this host, or the peer doesn't speak TLS. */
  tls: 'no secure connection could be made (TLS)',
  redirect: 'it redirects, and redirects are not followed: give the URL that it redirects to',
  /** The answer is encoded. Only Node reports this, since browsers decode answers. */
  encoding: 'its answer has a Content-Encoding, though the request accepts none',
  /** The answer began, but did not complete. */
  broken: 'the connection broke in the middle of the answer',
  /** The platform gives no reason, as in browsers. */
  unknown:
    "it can't be reached, or it redirects; or, in a page, the browser withheld the answer: the service doesn't allow the page's origin (CORS), or is on http under a page on https",
} as const;

/** Reason why no complete answer came: a key of `UNREACHABLE`. */
export type UnreachableReason = keyof typeof UNREACHABLE;

/** Matches codes of Node (`tls`, "X509 certificate error codes", and Node's own) and of OpenSSL. */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH$|PATH_LENGTH_)/;

/**
 * Returns the reason for an incomplete answer. Reads it from the cause that `platformFetch` and Node's fetch
 * attach to their TypeErrors. Browsers attach none.
 */
export function unreachableReason({ reason, cause }: NoAnswerError): UnreachableReason {
  if (reason === 'timeout' || reason === 'broken') return reason;
  const inner: unknown = cause instanceof Error ? cause.cause : undefined;
  if (!(inner instanceof Error)) return 'unknown';
  if (inner.message === 'unexpected redirect') return 'redirect';
  const code = 'code' in inner ? String(inner.code) : '';
  if (code === 'CONTENT_ENCODING') return 'encoding';
  if (/^(ENOTFOUND$|EAI_)/.test(code)) return 'dns';
  if (/TIMEDOUT|TIMEOUT/.test(code)) return 'timeout';
  return TLS_CODES.test(code) ? 'tls' : 'connection';
}

/**
 * Returns the platform's code of what caused the failure, such as ECONNREFUSED; null if the platform gives no
 * code, as in browsers.
 *
 * @param error error that `fetch` threw
 */
export function causeCode(error: unknown): string | null {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return null;
  // By the Fetch standard, "Port blocking", nothing was sent. Node gives no code.
  if (cause.message === 'bad port') return 'BAD_PORT';
  const code = 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
}

/**
 * Returns whether the exchange failed while it was connecting, so that no byte of the request was sent.
 * Returns false if the platform doesn't say, as in browsers.
 *
 * @param cause the cause of a NoAnswerError
 */
export function failedToConnect(cause: unknown): boolean {
  const inner: unknown = cause instanceof Error ? cause.cause : undefined;
  // There is one failure for each address that was tried.
  const failures: unknown[] = inner instanceof AggregateError ? inner.errors : [inner];
  return failures.length > 0 && failures.every(isConnectFailure);
}

/** Returns whether an error is of Node's connecting or DNS lookup, or undici's time-out of a connection. */
function isConnectFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { syscall, code } = error as { syscall?: unknown; code?: unknown };
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
}

/** Returns whether a timer accepts the value, in milliseconds (WHATWG HTML, "Timers"). */
export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= 2_147_483_647;
}

/** The range that isTimeout accepts, for messages. */
export const TIMEOUT_RANGE = 'a number of milliseconds from 1 to 2147483647';

/**
 * Does the same as `fetchBytes`, and decodes UTF-8; an invalid sequence becomes U+FFFD.
 *
 * @throws NoAnswerError; the signal's reason
 */
export async function fetchText(url: URL, init: RequestInit, bounds: Bounds): Promise<TextAnswer> {
  const { bytes, type: _, ...outcome } = await fetchBytes(url, init, bounds);
  return { ...outcome, text: new TextDecoder().decode(bytes) };
}

/**
 * Sends a request. Follows no redirect, sends no cookie and ignores every cache.
 *
 * @throws NoAnswerError; the signal's reason
 */
export async function fetchBytes(url: URL, init: RequestInit, bounds: Bounds): Promise<BytesAnswer> {
  // Don't call it as a method of `bounds`: a browser's fetch would throw "Illegal invocation".
  const { fetch = platformFetch } = bounds;
  bounds.signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(Math.ceil(bounds.timeoutMs));
  const signal = bounds.signal ? AbortSignal.any([timeout, bounds.signal]) : timeout;
  let hasBegun = false;
  try {
    const options = { redirect: 'error', credentials: 'omit', cache: 'no-store' } as const;
    const response = await fetch(url, { ...init, ...options, signal });
    hasBegun = true;
    const bytes = await readBody(response, bounds.maxSize);
    return { ...toOutcome(response), bytes, type: response.headers.get('content-type') };
  } catch (cause) {
    if (bounds.signal?.aborted && !timeout.aborted) throw bounds.signal.reason;
    if (cause instanceof NoAnswerError) throw cause;
    throw new NoAnswerError(timeout.aborted ? 'timeout' : hasBegun ? 'broken' : 'unreachable', { cause });
  }
}

function toOutcome({ status, ok, headers }: Response): Outcome {
  const retryAfter = headers.get('retry-after') ?? '';
  const key = headers.get(ENCLAVE_KEY_HEADER) ?? '';
  return {
    status,
    ok,
    ...(/^[0-9]{1,6}$/.test(retryAfter) && { retryAfterSeconds: Number(retryAfter) }),
    ...(/^[0-9a-f]{64}$/.test(key) && { enclaveKey: key }),
  };
}

/**
 * Reads the whole body of a response, for a client that has no size limit of its own. Returns the response
 * with the body that was read.
 *
 * @param maxSize maximum size of the body in bytes
 * @throws NoAnswerError: too large; what the body's stream throws
 */
export async function withBoundedBody(response: Response, maxSize: number): Promise<Response> {
  const bytes = await readBody(response, maxSize);
  // The constructor of a response refuses some statuses, and a body for others.
  return Object.defineProperty(response, 'body', { value: new Response(bytes).body });
}

async function readBody(response: Response, maxSize: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return concat(chunks, size);
    size += chunk.value.length;
    if (size > maxSize) {
      await reader?.cancel();
      throw new NoAnswerError('too large');
    }
    chunks.push(chunk.value);
  }
}

function concat(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/**
 * Returns the `code` in the JSON of an error response, if it has the form of a code. Nothing else of the
 * response is passed on.
 */
export function serverCode(text: string): string | null {
  try {
    const code: unknown = JSON.parse(text)?.code;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
  } catch {
    return null;
  }
}
