/** Requests to an enclave: bounded in time and size, and answered with JSON or a typed error. */
import {
  AnswerTooLargeError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
  InvalidClientOptionError,
  MalformedAnswerError,
} from './errors.ts';

export interface Http {
  readonly base: URL;
  readonly fetch: typeof globalThis.fetch;
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
  const signal = AbortSignal.timeout(http.timeoutMs);
  // Errors name the path alone: a query may hold what is nobody else's business.
  const [name = path] = path.split('?');
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  let response: Response;
  let text: string;
  try {
    response = await http.fetch(new URL(path, http.base), {
      ...(body === undefined ? {} : post),
      signal,
      // An enclave answers by itself, keeps no session, and a kept attestation would be a stale one.
      redirect: 'error',
      credentials: 'omit',
      cache: 'no-store',
    });
    text = await readText(response, name);
  } catch (cause) {
    if (cause instanceof AnswerTooLargeError) throw cause;
    throw new EnclaveUnreachableError(name, { cause });
  }
  if (!response.ok) throw new EnclaveRefusedError(name, response.status, serverCode(text));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MalformedAnswerError(name, 'it is not JSON', { cause });
  }
}

async function readText(response: Response, name: string): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let text = '';
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return text + decoder.decode();
    size += chunk.value.length;
    if (size > MAX_ANSWER_SIZE) {
      await reader?.cancel();
      throw new AnswerTooLargeError(name, MAX_ANSWER_SIZE);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}

/** The `code` of an error's JSON, if it looks like one: nothing else of a foreign text is passed on. */
function serverCode(text: string): string | null {
  try {
    const code: unknown = JSON.parse(text)?.code;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : null;
  } catch {
    return null;
  }
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
