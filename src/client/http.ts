/** Requests to an enclave: answered with JSON or a typed error. */
import { fetchText, NoAnswer, serverCode } from '../fetch.ts';
import {
  AnswerTooLargeError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
  InvalidClientOptionError,
  MalformedAnswerError,
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
      throw new EnclaveUnreachableError(name, { cause: error.cause });
    },
  );
  if (!ok) throw new EnclaveRefusedError(name, status, serverCode(text));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MalformedAnswerError(name, 'it is not JSON', { cause });
  }
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
