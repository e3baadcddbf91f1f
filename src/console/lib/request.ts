/**
 * Sends requests to the address that the user clicked for: with limits, without cookies, and without
 * following redirects.
 */

/** Maximum size of an answer in bytes, far more than a document in hexadecimal or a schema has. */
const MAX_SIZE = 1_048_576;
const TIMEOUT_MS = 15_000;

export type RequestFailure = 'unreachable' | 'timeout' | 'too large' | 'refused' | 'malformed';

/** Reason why an answer is missing or unusable. It contains no text from the other side, only `status`. */
export class RequestError extends Error {
  readonly failure: RequestFailure;
  readonly status: number | undefined;

  constructor(failure: RequestFailure, message: string, status?: number) {
    super(message);
    this.failure = failure;
    this.status = status;
  }
}

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** JSON body to send by POST. Without it, the request is a GET. */
  readonly body?: string;
  /** Maximum size of the answer, in bytes. */
  readonly maxSize?: number;
}

/** Sends a request. @throws RequestError; the signal's reason */
export async function requestText(
  url: URL,
  { signal, body, maxSize = MAX_SIZE }: RequestOptions,
): Promise<{ text: string; status: number; ok: boolean }> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const post = { method: 'POST', headers: { 'content-type': 'application/json' } };
  try {
    const response = await fetch(url, {
      ...(body !== undefined && { ...post, body }),
      redirect: 'error',
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.any([signal, timeout]),
    });
    return { text: await readText(response, maxSize), status: response.status, ok: response.ok };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RequestError) throw error;
    if (timeout.aborted) throw new RequestError('timeout', `${url.host} took longer than 15 seconds.`);
    throw new RequestError('unreachable', describeUnreachable(url));
  }
}

/**
 * Sends a request like `requestText`, and parses the JSON of a successful answer.
 *
 * @throws RequestError; the signal's reason
 */
export async function requestJson(url: URL, options: RequestOptions): Promise<unknown> {
  const { text, status, ok } = await requestText(url, options);
  if (!ok) throw new RequestError('refused', `${url.host} answered with status ${status}.`, status);
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError('malformed', `The answer of ${url.host} is not JSON.`);
  }
}

async function readText(response: Response, maxSize: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return text + decoder.decode();
    size += chunk.value.length;
    if (size > maxSize) {
      await reader?.cancel();
      throw new RequestError('too large', `The answer has more than ${maxSize} bytes.`);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}

function describeUnreachable({ host, protocol }: URL): string {
  const isMixedContent = location.protocol === 'https:' && protocol === 'http:';
  const cause = isMixedContent
    ? 'This page was loaded over https, so the browser blocks its requests to http addresses.'
    : `It may be down, redirect, or not allow pages of ${location.origin} to read its answers (CORS).`;
  return `${host} gave no answer. ${cause}`;
}
