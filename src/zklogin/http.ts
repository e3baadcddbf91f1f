/** Requests to the services that a login needs: bounded, and repeated only where that can do no harm. */
import { fetchText, isTimeout, NoAnswerError, serverCode, type TextAnswer, TIMEOUT_RANGE } from '../fetch.ts';
import {
  InvalidOptionError,
  MalformedAnswerError,
  ServiceRefusedError,
  ServiceTimeoutError,
  ServiceUnreachableError,
} from './errors.ts';

export interface ServiceOptions {
  /** Sent along, for an operator's credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For one attempt, its answer's body included. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
}

export interface PrivateServiceOptions extends ServiceOptions {
  /** Takes a URL of http as well: for a service of one's own, within a private network. */
  readonly allowHttp?: boolean;
}

/** Far more than a proof (4 KB) or a token takes. */
const MAX_ANSWER_SIZE = 65_536;
const ATTEMPTS = 3;
const PAUSE_MS = 500;

/** What a self-run proving service says when its prover was too slow (spec section 7), in text or JSON. */
const TOOK_LONGER = /\btook longer than (\d{1,6}) ?s(?:econds?)?\b/i;

export interface ServiceRequest extends ServiceOptions {
  /** For messages: "salt service". */
  readonly service: string;
  readonly url: URL;
  readonly contentType: string;
  readonly body: string;
  readonly timeoutMs: number;
  /** Whether the request may be sent again when the service did nothing with it. */
  readonly repeatable: boolean;
}

/** https, or http that does not leave this machine. */
export function isSecure({ protocol, hostname }: URL): boolean {
  const local = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]';
  return protocol === 'https:' || (protocol === 'http:' && local);
}

/**
 * What is sent to a service is secret: a token, a salt, a client secret.
 *
 * @param allowHttp undefined where the caller has no such option
 * @throws InvalidOptionError
 */
export function serviceUrl(service: string, url: string | URL, allowHttp?: boolean): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.password !== '') {
    throw new InvalidOptionError(`the URL of the ${service} must be https, without a user name`);
  }
  if (allowHttp !== true && !isSecure(parsed)) {
    const hint = allowHttp === undefined ? '' : ', or say allowHttp in a private network of your own';
    throw new InvalidOptionError(
      `the URL of the ${service} must be https: over http others can read what is sent; use http on this machine alone${hint}`,
    );
  }
  return parsed;
}

/** POSTs and returns the answer, whatever its status. @throws InvalidOptionError, the service errors for no answer */
export async function post(request: ServiceRequest): Promise<TextAnswer> {
  if (!isTimeout(request.timeoutMs)) throw new InvalidOptionError(`timeoutMs must be ${TIMEOUT_RANGE}`);
  for (let attempt = 1; ; attempt++) {
    const answer = await send(request).catch((error: unknown) => {
      if (error instanceof NoAnswerError) return error;
      throw error;
    });
    if (request.repeatable && attempt < ATTEMPTS && didNothing(answer)) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * attempt));
      continue;
    }
    if (answer instanceof NoAnswerError) throw failureOf(answer, request);
    return answer;
  }
}

/** The JSON of an answer. @throws the service errors of errors.ts */
export function jsonOf(service: string, { ok, status, text }: TextAnswer): unknown {
  const seconds = ok ? undefined : TOOK_LONGER.exec(text)?.[1];
  if (seconds !== undefined) {
    throw new ServiceTimeoutError(
      `the ${service} gave up, since its prover took longer than ${seconds} seconds: raise its PROVER_TIMEOUT, or give the prover more cores`,
    );
  }
  if (!ok) throw new ServiceRefusedError(service, status, serverCode(text));
  try {
    return JSON.parse(text);
  } catch {
    throw new MalformedAnswerError(`the ${service} answered with no JSON`);
  }
}

async function send({
  url,
  headers,
  contentType,
  body,
  timeoutMs,
  fetch,
}: ServiceRequest): Promise<TextAnswer> {
  const init = { method: 'POST', headers: headersOf(headers, contentType), body };
  return await fetchText(url, init, { fetch, timeoutMs, maxSize: MAX_ANSWER_SIZE });
}

/** Else a header that can't be sent would look like a service that can't be reached. */
function headersOf(given: ServiceOptions['headers'], contentType: string): Headers {
  try {
    const headers = new Headers(given);
    headers.set('content-type', contentType);
    return headers;
  } catch {
    // Without the cause, which may quote a value: an operator's credentials.
    throw new InvalidOptionError('headers must be names and values that HTTP can send');
  }
}

/**
 * Whether no answer began, or the service says that it is too busy. After a time-out a prover may still be at
 * work: to ask again would double its load.
 */
function didNothing(answer: TextAnswer | NoAnswerError): boolean {
  return answer instanceof NoAnswerError
    ? answer.reason === 'unreachable'
    : answer.status === 503 && !TOOK_LONGER.test(answer.text);
}

function failureOf({ reason }: NoAnswerError, { service, timeoutMs }: ServiceRequest) {
  // Without the cause: it may hold the request, and with it the token.
  if (reason === 'timeout')
    return new ServiceTimeoutError(`the ${service} did not answer within ${timeoutMs} ms`);
  if (reason === 'too large') {
    return new MalformedAnswerError(`the ${service} answered with more than ${MAX_ANSWER_SIZE} bytes`);
  }
  if (reason === 'broken') {
    return new ServiceUnreachableError(`the connection to the ${service} broke in the middle of its answer`);
  }
  return new ServiceUnreachableError(
    `the ${service} can't be reached; in a browser it must also allow this page's origin (CORS)`,
  );
}
