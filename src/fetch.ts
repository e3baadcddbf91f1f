/** One request, bounded in time and size, in Node and browsers: what every client of this project sends. */

export interface Bounds {
  /** Default: the platform's own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** For the whole exchange, including the body of the response. */
  readonly timeoutMs: number;
  /** Of the response body, in bytes. */
  readonly maxSize: number;
}

interface Outcome {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  /** From `Retry-After`, where it is a number of seconds (RFC 9110, section 10.2.3). */
  readonly retryAfterSeconds?: number | undefined;
}

export interface TextAnswer extends Outcome {
  readonly text: string;
}

export interface BytesAnswer extends Outcome {
  readonly bytes: Uint8Array;
  /** The `Content-Type`, or null. */
  readonly type: string | null;
}

/** Internal: each client turns it into an error with a code of its own. */
export class NoAnswerError extends Error {
  /** `broken`: the response began, but did not complete. */
  readonly reason: 'unreachable' | 'timeout' | 'too large' | 'broken';

  constructor(reason: NoAnswerError['reason'], options?: ErrorOptions) {
    super(`no answer: ${reason}`, options);
    this.reason = reason;
  }
}

/** Why there was no complete answer, as far as the platform says. */
export const UNREACHABLE = {
  /** No complete answer within `timeoutMs`, or no connection within the platform's own limit. */
  timeout: 'it took too long',
  dns: 'its host name was not found',
  /** The connection was refused or reset, there is no route, or the peer doesn't speak HTTP. */
  connection: 'the connection failed',
  /** The certificate is not valid for this host, or the peer doesn't speak TLS. */
  tls: 'no secure connection could be made (TLS)',
  redirect: 'it redirects, which is not followed: give the URL that it redirects to',
  /** The answer began, but did not complete. */
  broken: 'the connection broke in the middle of the answer',
  /** Browsers say no more. */
  unknown:
    "it can't be reached, or it redirects; or, in a page, the browser withheld the answer: the service doesn't allow the page's origin (CORS), or is on http under a page on https",
} as const;

export type UnreachableReason = keyof typeof UNREACHABLE;

/** Node's codes (`tls`, "X509 certificate error codes", and its own) and OpenSSL's. */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH$|PATH_LENGTH_)/;

/** Reads the cause that Node's fetch attaches to its TypeError. Browsers attach none. */
export function unreachableReason({ reason, cause }: NoAnswerError): UnreachableReason {
  if (reason === 'timeout' || reason === 'broken') return reason;
  const inner: unknown = cause instanceof Error ? cause.cause : undefined;
  if (!(inner instanceof Error)) return 'unknown';
  if (inner.message === 'unexpected redirect') return 'redirect';
  const code = 'code' in inner ? String(inner.code) : '';
  if (/^(ENOTFOUND$|EAI_)/.test(code)) return 'dns';
  if (/TIMEDOUT|TIMEOUT/.test(code)) return 'timeout';
  return TLS_CODES.test(code) ? 'tls' : 'connection';
}

/** Whether a timer accepts the value, in milliseconds (WHATWG HTML, "Timers"). */
export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= 2_147_483_647;
}

/** What isTimeout accepts, for messages. */
export const TIMEOUT_RANGE = 'a number of milliseconds from 1 to 2147483647';

/** As `fetchBytes`; what is not UTF-8 becomes U+FFFD. @throws NoAnswerError */
export async function fetchText(url: URL, init: RequestInit, bounds: Bounds): Promise<TextAnswer> {
  const { bytes, type: _, ...outcome } = await fetchBytes(url, init, bounds);
  return { ...outcome, text: new TextDecoder().decode(bytes) };
}

/**
 * Follows no redirect, sends no cookie and ignores every cache.
 *
 * @throws NoAnswerError
 */
export async function fetchBytes(url: URL, init: RequestInit, bounds: Bounds): Promise<BytesAnswer> {
  // Don't call it as a method of `bounds`: a browser's fetch would throw "Illegal invocation".
  const { fetch = globalThis.fetch } = bounds;
  const signal = AbortSignal.timeout(Math.ceil(bounds.timeoutMs));
  let began = false;
  try {
    const options = { redirect: 'error', credentials: 'omit', cache: 'no-store' } as const;
    const response = await fetch(url, { ...init, ...options, signal });
    began = true;
    const bytes = await readBody(response, bounds.maxSize);
    const { status, ok, headers } = response;
    const retryAfter = headers.get('retry-after') ?? '';
    const answer = { status, ok, bytes, type: headers.get('content-type') };
    return /^[0-9]{1,6}$/.test(retryAfter) ? { ...answer, retryAfterSeconds: Number(retryAfter) } : answer;
  } catch (cause) {
    if (cause instanceof NoAnswerError) throw cause;
    throw new NoAnswerError(signal.aborted ? 'timeout' : began ? 'broken' : 'unreachable', { cause });
  }
}

async function readBody(response: Response, maxSize: number): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return joined(chunks, size);
    size += chunk.value.length;
    if (size > maxSize) {
      await reader?.cancel();
      throw new NoAnswerError('too large');
    }
    chunks.push(chunk.value);
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** The `code` in the JSON of an error response, if it has the form of one. Nothing else of the response is passed on. */
export function serverCode(text: string): string | null {
  try {
    const code: unknown = JSON.parse(text)?.code;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
  } catch {
    return null;
  }
}
