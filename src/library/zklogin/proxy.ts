/** Lets a page reach a proving service through its own origin: a middleware for the dapp's back end. */
import { fetchText, isTimeout, NoAnswerError, TIMEOUT_RANGE } from '../fetch.ts';
import { type ZkLoginCode, ZkLoginError } from './errors.ts';
import { createHeaders, createServiceError, MAX_ANSWER_SIZE, serviceUrl } from './http.ts';

/** A request of Node's HTTP server, or of Express with or without a body parser. */
export interface ProxyRequest extends AsyncIterable<Uint8Array> {
  /** HTTP method of the request. */
  readonly method?: string | undefined;
  /** Headers of the request, with names in lower case. */
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  /**
   * Body that `express.json()`, `express.text()` or `express.raw()` has parsed, if one of them ran before.
   */
  readonly body?: unknown;
}

/** A response of Node's HTTP server, or of Express. */
export interface ProxyResponse {
  /** HTTP status of the response. */
  statusCode: number;
  /** Sets a header of the response. */
  setHeader(name: string, value: string): unknown;
  /** Sends the body, and ends the response. */
  end(body: string): unknown;
}

/** Handles a page's requests for proofs. */
export type ProverProxy = (request: ProxyRequest, response: ProxyResponse) => Promise<void>;

/** Options of the proxy in front of a proving service. */
export interface ProxyOptions {
  /** Additional headers for the proving service, such as your credentials there. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time limit of the whole exchange with the proving service, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Whether http URLs are accepted, for your own service in a private network. Default: false. */
  readonly allowHttp?: boolean;
  /** Function that sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** Maximum size of a request in bytes; it usually has about 3 KB. */
const MAX_REQUEST_SIZE = 16_384;
/** Number of bytes of a larger request that are read and discarded, so that its sender gets an answer. */
const MAX_DISCARDED = 1_048_576;
const TIMEOUT_MS = 60_000;
const SERVICE = 'proving service';

/**
 * The statuses that this middleware chooses itself: it refuses a request, or reports that the proving service
 * doesn't answer.
 */
const STATUSES = {
  ZKLOGIN_OPTION: 400,
  ZKLOGIN_MALFORMED_ANSWER: 502,
  ZKLOGIN_UNREACHABLE: 502,
  ZKLOGIN_TIMEOUT: 504,
} as const satisfies Partial<Record<ZkLoginCode, number>>;

/**
 * Creates an Express middleware that forwards each POST to a proving service, and returns the service's
 * status, `Retry-After` and JSON. The page then asks its own origin, so that the service needs no CORS and
 * credentials stay on the back end. Nothing is logged or stored. The middleware's own errors are JSON too:
 * `{"error", "code"}`.
 *
 * The middleware doesn't know who sends a request. Restrict it to your users as you restrict the rest of your
 * back end.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param url the proving service's URL, complete with its path: `https://prover.example/v1`
 * @throws ZkLoginError: ZKLOGIN_OPTION
 * @example
 * app.post('/prove', proverProxy('https://prover.internal.example/v1'));
 * // in the page: getProof(new URL('/prove', location.href), login.proofRequest(salt))
 */
export function proverProxy(url: string | URL, options: ProxyOptions = {}): ProverProxy {
  const { headers, timeoutMs = TIMEOUT_MS, allowHttp = false, fetch } = options;
  const target = serviceUrl(SERVICE, url, allowHttp);
  if (!isTimeout(timeoutMs)) throw new ZkLoginError('ZKLOGIN_OPTION', `timeoutMs must be ${TIMEOUT_RANGE}`);
  const requestHeaders = createHeaders(headers, 'application/json');
  const bounds = { timeoutMs, maxSize: MAX_ANSWER_SIZE, fetch };
  return async (request, response) => {
    try {
      const body = await readBody(request);
      if (typeof body !== 'string') {
        send(response, body.status, formatError('ZKLOGIN_OPTION', body.error), body.headers);
        return;
      }
      const answer = await fetchText(target, { method: 'POST', headers: requestHeaders, body }, bounds);
      const { status, text, retryAfterSeconds } = answer;
      if (!isJson(text)) {
        // The answer is a gateway's page, for example. Don't pass on a status of success for it.
        const message = `the ${SERVICE} answered with status ${status}, and not with JSON`;
        send(response, status < 400 ? 502 : status, formatError('ZKLOGIN_MALFORMED_ANSWER', message), {
          retryAfterSeconds,
        });
        return;
      }
      send(response, status, text, { retryAfterSeconds });
    } catch (error) {
      const serviceError =
        error instanceof NoAnswerError
          ? createServiceError(error, { service: SERVICE, timeoutMs })
          : undefined;
      const code = (serviceError?.code ?? 'ZKLOGIN_UNREACHABLE') as keyof typeof STATUSES;
      const message = serviceError?.message ?? `the request could not be sent to the ${SERVICE}`;
      send(response, STATUSES[code], formatError(code, message));
    }
  };
}

interface Refusal {
  readonly status: number;
  readonly error: string;
  readonly headers?: AnswerHeaders;
}

interface AnswerHeaders {
  readonly retryAfterSeconds?: number | undefined;
  readonly allow?: string;
}

/** Returns the JSON to forward, or a refusal. The JSON is unchanged, since the proving service checks it. */
async function readBody(request: ProxyRequest): Promise<string | Refusal> {
  if (request.method !== 'POST') {
    return { status: 405, error: 'this endpoint supports POST', headers: { allow: 'POST' } };
  }
  const type = request.headers['content-type'];
  if (typeof type !== 'string' || !/^application\/json\s*(;|$)/i.test(type)) {
    return { status: 415, error: 'send the request as Content-Type: application/json' };
  }
  const text = request.body === undefined ? await read(request) : stringifyBody(request.body);
  if (text === null || new TextEncoder().encode(text).length > MAX_REQUEST_SIZE) {
    return { status: 413, error: `the request has more than ${MAX_REQUEST_SIZE} bytes` };
  }
  return isJson(text) ? text : { status: 400, error: 'the request is not JSON' };
}

/** Returns the body as text. @param body the body that a parser of Express has set */
function stringifyBody(body: unknown): string {
  if (typeof body === 'string') return body;
  if (!(body instanceof Uint8Array)) return JSON.stringify(body);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return decode(decoder, body) + decode(decoder);
}

/** Reads the body; null if it is too large. Bytes that are not UTF-8 become text that is not JSON. */
async function read(request: ProxyRequest): Promise<string | null> {
  if (Number(request.headers['content-length']) > MAX_REQUEST_SIZE) return null;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    // Leaving the loop closes the connection, so a caller that sends endlessly gets no answer.
    if (size > MAX_DISCARDED) break;
    if (size <= MAX_REQUEST_SIZE) text += decode(decoder, chunk);
  }
  return size > MAX_REQUEST_SIZE ? null : text + decode(decoder);
}

/** Decodes UTF-8. Returns a zero character, which JSON never contains, for other bytes. */
function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    return '\0';
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function formatError(code: keyof typeof STATUSES, error: string): string {
  return JSON.stringify({ error, code });
}

function send(
  response: ProxyResponse,
  status: number,
  json: string,
  { retryAfterSeconds, allow }: AnswerHeaders = {},
): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  // The answer is as secret as a password.
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds));
  if (allow !== undefined) response.setHeader('allow', allow);
  response.end(json);
}
