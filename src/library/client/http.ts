/** Sends requests to an enclave. They return JSON, or throw a ClientError. */
import {
  causeCode,
  fetchText,
  NoAnswerError,
  serverCode,
  type TextAnswer,
  unreachableReason,
} from '../fetch.ts';
import { ClientError, EnclaveRefusedError, EnclaveUnreachableError } from './errors.ts';

export interface Http {
  readonly base: URL;
  /** Function that sends requests. Default: the platform's own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Time limit of one request, including the body of the answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface JsonAnswer {
  readonly json: unknown;
  /** The key that the answer claims to be signed with, in hex. */
  readonly enclaveKey: string | undefined;
}

/** Maximum size of an answer in bytes: an attestation document in hexadecimal has 33 KB at most. */
export const MAX_ENCLAVE_ANSWER_SIZE = 1_048_576;
/** Maximum length of a message of the server, in characters. */
const MAX_MESSAGE_LENGTH = 500;

/**
 * Sends a request, and parses its answer as JSON.
 *
 * @param path relative to the base, with its query
 * @param body sent as JSON by POST; without a body, the request is a GET
 * @throws ClientError
 */
export async function requestJson(http: Http, path: string, body?: unknown): Promise<JsonAnswer> {
  // Errors name only the path: a query may be confidential.
  const [name = path] = path.split('?');
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  // The path is not resolved: a path such as //host would name another host.
  const url = new URL(http.base.href + path);
  const bounds = { ...http, maxSize: MAX_ENCLAVE_ANSWER_SIZE };
  const answer = await fetchText(url, body === undefined ? {} : post, bounds).catch((error) =>
    throwNoAnswer(http, name, error),
  );
  if (!answer.ok) throw refusedError(name, answer);
  try {
    return { json: JSON.parse(answer.text), enclaveKey: answer.enclaveKey };
  } catch (cause) {
    throw malformedAnswer(name, 'it is not JSON', { cause });
  }
}

/** Creates the error for an answer with an error status. @param name the endpoint's name, for the message */
export function refusedError(
  name: string,
  { status, text, retryAfterSeconds }: Pick<TextAnswer, 'status' | 'text' | 'retryAfterSeconds'>,
): EnclaveRefusedError {
  const serverReason = { serverCode: serverCode(text), serverMessage: serverMessage(text) };
  return new EnclaveRefusedError(name, {
    status,
    ...serverReason,
    retryAfterSeconds: retryAfterSeconds ?? null,
  });
}

/**
 * Throws the ClientError for a request without a complete answer, or any other error unchanged.
 *
 * @param name the endpoint's name without its query, for the message
 */
export function throwNoAnswer({ base }: Http, name: string, error: unknown): never {
  if (!(error instanceof NoAnswerError)) throw error;
  if (error.reason === 'too large') {
    const message = `the answer to ${name} has more than ${MAX_ENCLAVE_ANSWER_SIZE} bytes`;
    throw new ClientError('CLIENT_ANSWER_TOO_LARGE', message);
  }
  const { href } = new URL(base.href + name);
  const { cause } = error;
  throw new EnclaveUnreachableError(href, unreachableReason(error), causeCode(cause), { cause });
}

/** Creates the error for an answer that can't be parsed. @param endpoint its endpoint, for the message */
export function malformedAnswer(endpoint: string, problem: string, options?: ErrorOptions): ClientError {
  const message = `the answer to ${endpoint} can't be used: ${problem}`;
  return new ClientError('CLIENT_MALFORMED_ANSWER', message, options);
}

export function invalidOption(message: string, options?: ErrorOptions): ClientError {
  return new ClientError('CLIENT_OPTION', message, options);
}

/**
 * Returns the `error` in the JSON of an error response as one line, without control or invisible characters.
 * Returns null if the response has no such text.
 */
export function serverMessage(body: string): string | null {
  let message: unknown;
  try {
    message = JSON.parse(body)?.error;
  } catch {
    return null;
  }
  if (typeof message !== 'string') return null;
  const line = message.replace(/[\p{C}\s]+/gu, ' ').trim();
  if (line.length <= MAX_MESSAGE_LENGTH) return line === '' ? null : line;
  // Don't cut a surrogate pair in half.
  return `${line.slice(0, MAX_MESSAGE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/**
 * Returns the path of an application's endpoint, relative to the base. Refuses paths outside the base.
 *
 * @throws ClientError: CLIENT_OPTION
 */
export function endpointPath({ base }: Http, path: string): string {
  const relative = typeof path === 'string' ? path.replace(/^\//, '') : '';
  const url = URL.canParse(relative, base) ? new URL(relative, base) : null;
  if (url === null || url.href === base.href || !url.href.startsWith(base.href) || url.hash !== '') {
    throw invalidOption("the path must be one of the enclave's endpoints, such as /draw");
  }
  return url.href.slice(base.href.length);
}

/**
 * Returns the base URL of an enclave's endpoints. Keeps its path, and drops its query.
 *
 * @throws ClientError: CLIENT_OPTION
 */
export function baseUrl(url: string | URL): URL {
  // The constructor of URL is not tried: its error would contain the text, which may have a password.
  if (!URL.canParse(url)) throw invalidOption('the URL of the enclave is invalid');
  const base = new URL(url);
  if (!/^https?:$/.test(base.protocol) || base.username !== '' || base.password !== '') {
    throw invalidOption('the URL of the enclave must be http or https, without a user name');
  }
  base.search = '';
  base.hash = '';
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return base;
}

/**
 * Wraps an error from outside this library, for the state of an enclave. The error becomes the `cause`, and
 * none of its properties is read.
 */
export function foreignError(cause: unknown): ClientError {
  const message = 'the enclave is not attested, since something else failed: see the cause of this error';
  return new ClientError('CLIENT_FAILED', message, { cause });
}
