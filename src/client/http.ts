/** Requests to an enclave: answered with JSON or a typed error. */
import { fetchText, NoAnswer, serverCode } from '../fetch.ts';
import {
  AnswerTooLargeError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
  InvalidClientOptionError,
  MalformedAnswerError,
  type UnreachableReason,
} from './errors.ts';

export interface Http {
  readonly base: URL;
  /** The platform's own unless given. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** For one request, its answer's body included. */
  readonly timeoutMs: number;
}

/** Far more than an attestation document in hexadecimal (33 KB) or a signed answer takes. */
const MAX_ANSWER_SIZE = 1_048_576;
/** Characters, far more than any of the server's own messages has. */
const MAX_MESSAGE_LENGTH = 500;

/** Node's codes (`tls`, "X509 certificate error codes", and its own) and OpenSSL's. */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH$|PATH_LENGTH_)/;

/**
 * @param path relative to the base, with its query
 * @param body sent as JSON by POST; without one, the request is a GET
 */
export async function requestJson(http: Http, path: string, body?: unknown): Promise<unknown> {
  // Errors name the path alone: a query may hold what is nobody else's business.
  const [name = path] = path.split('?');
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const url = new URL(path, http.base);
  const bounds = { ...http, maxSize: MAX_ANSWER_SIZE };
  const { ok, status, text } = await fetchText(url, body === undefined ? {} : post, bounds).catch(
    (error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error;
      if (error.reason === 'too large') throw new AnswerTooLargeError(name, MAX_ANSWER_SIZE);
      throw new EnclaveUnreachableError(name, reasonOf(error), { cause: error.cause });
    },
  );
  if (!ok) throw new EnclaveRefusedError(name, status, serverCode(text), serverMessage(text));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MalformedAnswerError(name, 'it is not JSON', { cause });
  }
}

/** The `error` of an error's JSON as one line, with nothing in it that a terminal obeys or that hides text. */
function serverMessage(body: string): string | null {
  let message: unknown;
  try {
    message = JSON.parse(body)?.error;
  } catch {
    return null;
  }
  if (typeof message !== 'string') return null;
  const line = message.replace(/[\p{C}\s]+/gu, ' ').trim();
  if (line.length <= MAX_MESSAGE_LENGTH) return line === '' ? null : line;
  // Not in the middle of a character.
  return `${line.slice(0, MAX_MESSAGE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Node's fetch says why in the cause of its TypeError; a browser's says nothing. */
function reasonOf({ reason, cause }: NoAnswer): UnreachableReason {
  if (reason === 'timeout' || reason === 'broken') return reason;
  const told: unknown = cause instanceof Error ? cause.cause : undefined;
  if (!(told instanceof Error)) return 'unknown';
  if (told.message === 'unexpected redirect') return 'redirect';
  const code = 'code' in told ? String(told.code) : '';
  if (/^(ENOTFOUND$|EAI_)/.test(code)) return 'dns';
  if (/TIMEDOUT|TIMEOUT/.test(code)) return 'timeout';
  return TLS_CODES.test(code) ? 'tls' : 'connection';
}

/**
 * The path of an application's own endpoint, relative to where the enclave's endpoints are, and there only.
 *
 * @throws InvalidClientOptionError
 */
export function endpointPath({ base }: Http, path: string): string {
  const relative = typeof path === 'string' ? path.replace(/^\//, '') : '';
  const url = URL.canParse(relative, base) ? new URL(relative, base) : null;
  if (url === null || url.href === base.href || !url.href.startsWith(base.href) || url.hash !== '') {
    throw new InvalidClientOptionError("the path must be one of the enclave's endpoints, such as /draw");
  }
  return url.href.slice(base.href.length);
}

/**
 * The URL under which an enclave's endpoints are: a path is kept, a query is not.
 *
 * @throws InvalidClientOptionError
 */
export function baseUrl(url: string | URL): URL {
  let base: URL;
  try {
    base = new URL(url);
  } catch (cause) {
    throw new InvalidClientOptionError('the URL of the enclave can not be read', { cause });
  }
  if (!/^https?:$/.test(base.protocol) || base.username !== '' || base.password !== '') {
    throw new InvalidClientOptionError('the URL of the enclave must be http or https, without a user name');
  }
  base.search = '';
  base.hash = '';
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return base;
}
