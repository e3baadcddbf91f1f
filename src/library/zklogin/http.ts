/**
 * Sends requests to the services that a login needs. Time and size are limited, and a request is repeated
 * only when that is harmless.
 */

import {
  fetchText,
  isTimeout,
  NoAnswerError,
  serverCode,
  type TextAnswer,
  TIMEOUT_RANGE,
  unreachableReason,
} from '../fetch.ts';
import { isSecureUrl } from '../url.ts';
import { pause } from '../waiting.ts';
import { quantity } from '../wording.ts';
import { ServiceRefusedError, ServiceUnreachableError, ZkLoginError } from './errors.ts';

/** Options of a request to a service. */
export interface ServiceOptions {
  /** Additional request headers, for an operator's credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time limit of one attempt, including the body of the answer, in milliseconds. */
  readonly timeoutMs?: number;
  /** Signal that ends the request, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Function that sends the request. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** Options of a request to a service that may be your own. */
export interface PrivateServiceOptions extends ServiceOptions {
  /** Whether http URLs are accepted, for your own service in a private network. Default: false. */
  readonly allowHttp?: boolean;
}

/** Maximum size of an answer in bytes: far more than a proof (4 KB) or a token needs. */
export const MAX_ANSWER_SIZE = 65_536;
const ATTEMPTS = 3;
const PAUSE_MS = 500;

/** The code that this repository's proving service returns if its backend was too slow. */
const PROVER_TOO_SLOW = 'PROVER_BACKEND_TIMEOUT';
/**
 * Pattern of the message that Mysten's proving service returns in this case, in plain text or JSON without a
 * code.
 */
const TOOK_LONGER = /\btook longer than (\d{1,6}) ?s(?:econds?)?\b/i;
/**
 * Advice to the operator, by the codes of this repository's proving service for faults that callers can't
 * correct.
 */
const OPERATOR_ADVICE: Readonly<Record<string, string>> = {
  PROVER_WRONG_NETWORK:
    "its backend has another network's proving key: its operator must change ZKEY or VERIFYING_KEY",
};

export interface ServiceRequest extends ServiceOptions {
  /** Name of the service for messages, such as "salt service". */
  readonly service: string;
  readonly url: URL;
  readonly contentType: string;
  readonly body: string;
  readonly timeoutMs: number;
  /** Whether the request may be sent again if the service didn't process it. */
  readonly repeatable: boolean;
}

/**
 * Returns a service's URL, which must be secure, since requests contain secrets: a token, a salt, a client
 * secret.
 *
 * @param allowHttp whether http is accepted too; undefined if the caller has no such option
 * @throws ZkLoginError: ZKLOGIN_OPTION
 */
export function serviceUrl(service: string, url: string | URL, allowHttp?: boolean): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.password !== '') {
    throw new ZkLoginError('ZKLOGIN_OPTION', `the URL of the ${service} must be https, without a user name`);
  }
  if (allowHttp !== true && !isSecureUrl(parsed)) {
    const hint = allowHttp === undefined ? '' : ', or set allowHttp in your own private network';
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `the URL of the ${service} must be https: over http others can read the request; http is allowed on this machine only${hint}`,
    );
  }
  return parsed;
}

/**
 * Sends a POST, and returns the answer whatever its status.
 *
 * @throws ZkLoginError: ZKLOGIN_OPTION; ZKLOGIN_UNREACHABLE, ZKLOGIN_TIMEOUT or ZKLOGIN_MALFORMED_ANSWER if
 *   there is no complete answer; the signal's reason
 */
export async function postJson(request: ServiceRequest): Promise<TextAnswer> {
  if (!isTimeout(request.timeoutMs))
    throw new ZkLoginError('ZKLOGIN_OPTION', `timeoutMs must be ${TIMEOUT_RANGE}`);
  for (let attempt = 1; ; attempt++) {
    const answer = await send(request).catch((error: unknown) => {
      if (error instanceof NoAnswerError) return error;
      throw error;
    });
    if (request.repeatable && attempt < ATTEMPTS && mayRetry(answer)) {
      await pause(PAUSE_MS * attempt, request.signal);
      continue;
    }
    if (answer instanceof NoAnswerError) throw createServiceError(answer, request);
    return answer;
  }
}

/**
 * Returns the JSON of an answer. @throws ZkLoginError: ZKLOGIN_TIMEOUT, ZKLOGIN_REFUSED,
 * ZKLOGIN_MALFORMED_ANSWER
 */
export function parseAnswer(service: string, answer: TextAnswer): unknown {
  const { ok, status, text, retryAfterSeconds = null } = answer;
  if (!ok && isTooSlow(text)) {
    const seconds = TOOK_LONGER.exec(text)?.[1];
    const limit = seconds === undefined ? 'its time limit' : quantity(Number(seconds), 'second');
    throw new ZkLoginError(
      'ZKLOGIN_TIMEOUT',
      `the ${service} gave up: its prover took longer than ${limit}: raise its PROVER_TIMEOUT, or give the prover more cores`,
    );
  }
  if (!ok) {
    const code = serverCode(text);
    const advice = code === null ? undefined : OPERATOR_ADVICE[code];
    throw new ServiceRefusedError(service, { status, serverCode: code, retryAfterSeconds }, advice);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', `the answer of the ${service} is not JSON`);
  }
}

async function send({
  url,
  headers,
  contentType,
  body,
  timeoutMs,
  fetch,
  signal,
}: ServiceRequest): Promise<TextAnswer> {
  const init = { method: 'POST', headers: createHeaders(headers, contentType), body };
  return await fetchText(url, init, { fetch, timeoutMs, maxSize: MAX_ANSWER_SIZE, signal });
}

/**
 * Creates the headers before the request, so that an invalid header doesn't look like an unreachable service.
 */
export function createHeaders(customHeaders: ServiceOptions['headers'], contentType: string): Headers {
  try {
    const headers = new Headers(customHeaders);
    headers.set('content-type', contentType);
    return headers;
  } catch {
    // The error has no cause, which could quote a value, such as an operator's credentials.
    throw new ZkLoginError('ZKLOGIN_OPTION', 'headers must be valid HTTP header names and values');
  }
}

/** Returns whether a proving service reports that its prover exceeded its time limit. */
function isTooSlow(text: string): boolean {
  const code = serverCode(text);
  return code === null ? TOOK_LONGER.test(text) : code === PROVER_TOO_SLOW;
}

/**
 * Returns whether no answer began, or the service reports that it is busy. After a time-out, a prover may
 * still be working, and another request would double its load. After an encoded answer, this is also the
 * case.
 */
function mayRetry(answer: TextAnswer | NoAnswerError): boolean {
  return answer instanceof NoAnswerError
    ? answer.reason === 'unreachable' && unreachableReason(answer) !== 'encoding'
    : answer.status === 503 && !isTooSlow(answer.text);
}

/** Creates the error without a cause, which might contain the request, and with it the token. */
export function createServiceError(
  error: NoAnswerError,
  {
    service,
    timeoutMs,
    maxSize = MAX_ANSWER_SIZE,
  }: { readonly service: string; readonly timeoutMs: number; readonly maxSize?: number },
): ZkLoginError {
  if (error.reason === 'timeout') {
    return new ZkLoginError('ZKLOGIN_TIMEOUT', `the ${service} did not answer within ${timeoutMs} ms`);
  }
  if (error.reason === 'too large') {
    const message = `the answer of the ${service} has more than ${maxSize} bytes`;
    return new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', message);
  }
  return new ServiceUnreachableError(service, unreachableReason(error));
}
