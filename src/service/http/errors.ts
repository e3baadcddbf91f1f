import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { HttpError, type ServerCode, ServerError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { hasBody } from './json_body.ts';
import { addHeader, isAnswered, JsonText, sendJson } from './respond.ts';

/** Answers a request with an error. Never throws: if the answer can't be sent, the connection is closed. */
export type AnswerError = (
  thrown: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  /** Log whose lines carry the id of this request. */
  log: Logger,
) => void;

/** Writes the answer for an error that the caller may see. */
type WriteError = (response: ServerResponse, error: VisibleError) => void;

/** The part of an error that callers see. */
type VisibleError = Pick<HttpError, 'status' | 'code' | 'message' | 'details' | 'retryAfterSeconds'>;

/**
 * Returns the part of an HttpError that callers may see. Any other error, or an error that can't be read, is
 * a bug: its message is only for the log.
 */
function toVisibleError(thrown: unknown): VisibleError {
  try {
    if (thrown instanceof HttpError) {
      const { status, code, message, details, retryAfterSeconds } = thrown;
      return { status, code, message, details: { ...details }, retryAfterSeconds };
    }
  } catch {
    // An error that can't be read counts as any other bug.
  }
  return new ServerError('INTERNAL', 'an internal error; see the log');
}

/** Creates a function that answers with errors. It is the only place where an error becomes an answer. */
export function errorAnswers(write: WriteError): AnswerError {
  return (thrown, request, response, log) => {
    try {
      const error = toVisibleError(thrown);
      if (error.status >= 500) log.warn({ err: thrown }, 'request failed');
      // A handler may fail after its deadline, when the request has been answered.
      if (!response.headersSent) sendError(write, error, request, response);
      // The caller must not take a part of an answer for the whole.
      else if (!isAnswered(response)) request.socket.destroy();
    } catch {
      request.socket.destroy();
    }
  };
}

/** Key under which a response keeps the code of the error that it answers with. */
const CODE = Symbol('code');
type Refusal = ServerResponse & { [CODE]?: string };

/**
 * Returns the code of the error that the response contains, for the log; undefined if it contains no error.
 */
export function refusalCode(response: ServerResponse): string | undefined {
  return (response as Refusal)[CODE];
}

/** Answers with `{"error": string, "code": string}` and the error's details. */
export const answerError = errorAnswers((response, { status, message, code, details }) => {
  sendJson(response, status, { error: message, code, ...details });
});

/**
 * Returns a function that answers with an error as `answerError` does, but creates the body only once and
 * writes no line to the log. The whole request must have arrived.
 */
export function prepareAnswer({
  status,
  message,
  code,
  retryAfterSeconds,
}: ServerError): (response: ServerResponse) => void {
  const retryAfter = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)];
  const body = new JsonText(JSON.stringify({ error: message, code }), retryAfter);
  return (response) => {
    (response as Refusal)[CODE] = code;
    sendJson(response, status, body);
  };
}

function sendError(
  write: WriteError,
  error: VisibleError,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { status, code, retryAfterSeconds } = error;
  if (retryAfterSeconds !== undefined) addHeader(response, 'retry-after', String(retryAfterSeconds));
  // RFC 9110, section 15.5.2, requires a challenge; RFC 6750, section 3, defines the challenge for
  // tokens. A router may have set another challenge.
  if (status === 401 && !response.hasHeader('www-authenticate')) {
    addHeader(response, 'www-authenticate', 'Bearer error="invalid_token"');
  }
  // The unread rest of a body would be parsed as the next request.
  if (hasBody(request) && !request.complete) addHeader(response, 'connection', 'close');
  (response as Refusal)[CODE] = code;
  write(response, error);
}

/**
 * Answers malformed HTTP, which never reaches a route, in the same JSON form as other errors.
 *
 * @param pending an unsent answer to an earlier request of the connection. If there is one, nothing is sent,
 *   since the client would take this answer for the earlier one
 * @returns the error that was sent; undefined if nothing was sent
 */
export function onClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  pending?: ServerResponse,
): ServerError | undefined {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return undefined;
  }
  const [code, message]: [ServerCode, string] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['REQUEST_TIMEOUT', 'the request did not arrive in time']
        : ['MALFORMED_HTTP', 'the request is not well-formed HTTP/1.1'];
  return endWith(socket, new ServerError(code, message), pending);
}

/**
 * Answers CONNECT, whose connection Node takes out of its HTTP server (RFC 9110, section 9.3.6).
 *
 * @returns as `onClientError`
 */
export function refuseConnect(socket: Duplex, pending?: ServerResponse): ServerError | undefined {
  // Node has removed its own listener, and without a listener the error would be uncaught.
  socket.on('error', () => socket.destroy());
  const message = 'this server is not a proxy: it supports GET, HEAD and POST';
  return endWith(socket, new ServerError('METHOD_NOT_ALLOWED', message), pending);
}

/**
 * Time for which a connection stays open after the answer to malformed HTTP, in milliseconds. If it were
 * closed immediately, data that the peer is still sending would reset it, and the peer might never read the
 * answer.
 */
const LINGER_MS = 1000;
const lingering = new WeakSet<Duplex>();

/** Closes a connection after its last answer, which the peer may still be reading. */
export function endInSilence(socket: Duplex): void {
  if (!lingering.has(socket)) endAndLinger(socket, '');
}

function endAndLinger(socket: Duplex, text: string): void {
  lingering.add(socket);
  socket.end(text, () => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

function endWith(socket: Duplex, error: ServerError, pending?: ServerResponse): ServerError | undefined {
  if (pending) {
    pending.once('close', () => socket.destroy());
    return undefined;
  }
  if (!socket.writable) {
    if (!lingering.has(socket)) socket.destroy();
    return undefined;
  }
  const { status, code, message } = error;
  const body = JSON.stringify({ error: message, code });
  const allow = status === 405 ? 'Allow: GET, HEAD, POST\r\n' : '';
  endAndLinger(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n${allow}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  return error;
}
