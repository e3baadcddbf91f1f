import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import {
  EnclaveError,
  Forbidden,
  InvalidInput,
  TooManyRequests,
  Unacceptable,
  Unauthenticated,
  Unavailable,
  UpstreamFailed,
  UpstreamTimeout,
} from '../../errors.ts';
import { NsmError } from '../../nsm/errors.ts';
import type { Logger } from '../log.ts';
import { SecretsMissing } from '../secrets.ts';
import { sendJson } from './respond.ts';

export class NotFound extends EnclaveError {
  readonly code = 'NOT_FOUND';
}

export class MethodNotAllowed extends EnclaveError {
  readonly code = 'METHOD_NOT_ALLOWED';
}

export class UnsupportedMediaType extends EnclaveError {
  readonly code = 'UNSUPPORTED_MEDIA_TYPE';
}

export class BodyTooLarge extends EnclaveError {
  readonly code = 'BODY_TOO_LARGE';
}

export class MalformedJson extends InvalidInput {
  override readonly code = 'MALFORMED_JSON';
}

/** Not HTTP/1.1, or a request target of none of its forms. */
export class MalformedHttp extends InvalidInput {
  override readonly code = 'MALFORMED_HTTP';
}

export class HeadersTooLarge extends EnclaveError {
  readonly code = 'HEADERS_TOO_LARGE';
}

/** The request did not arrive whole within the time that it has. */
export class RequestTimeout extends EnclaveError {
  readonly code = 'REQUEST_TIMEOUT';
}

/** No answer was found within the time that a request has. */
export class AnswerTimeout extends EnclaveError {
  readonly code = 'ANSWER_TIMEOUT';
}

export class Overloaded extends Unavailable {
  readonly code = 'OVERLOADED';
  override readonly retryAfterSeconds = 1;
}

class Internal extends EnclaveError {
  readonly code = 'INTERNAL';
}

/** From cause to status: the first class that fits. */
const STATUS_OF: readonly (readonly [abstract new (...args: never[]) => EnclaveError, number])[] = [
  [InvalidInput, 400],
  [Unauthenticated, 401],
  [Forbidden, 403],
  [NotFound, 404],
  [MethodNotAllowed, 405],
  [RequestTimeout, 408],
  [BodyTooLarge, 413],
  [UnsupportedMediaType, 415],
  [Unacceptable, 422],
  [TooManyRequests, 429],
  [HeadersTooLarge, 431],
  [UpstreamFailed, 502],
  [Unavailable, 503],
  [NsmError, 503],
  [UpstreamTimeout, 504],
  [AnswerTimeout, 504],
];

export function notFound(_request: Request, _response: Response, next: NextFunction): void {
  next(new NotFound('there is no such endpoint'));
}

/** Ends a route's list of methods. @param allow the methods that it has, as in RFC 9110, section 10.2.1. */
export function methodNotAllowed(allow: string): RequestHandler {
  return (_request, response, next) => {
    response.setHeader('allow', allow);
    next(new MethodNotAllowed(`this endpoint takes ${allow}`));
  };
}

/**
 * The one place where an error becomes an answer: `{"error": text, "code": text}`. It never throws: what has no
 * answer ends its connection.
 *
 * @param log of the request
 */
export function answerError(
  thrown: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): void {
  try {
    const status = STATUS_OF.find(([cause]) => thrown instanceof cause)?.[1] ?? 500;
    if (status >= 500) log.warn({ err: thrown }, 'request failed');
    // A handler may fail after its deadline, when the request has been answered.
    if (!response.headersSent) sendError(status, thrown, request, response);
  } catch {
    request.socket.destroy();
  }
}

function sendError(
  status: number,
  thrown: unknown,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const error: EnclaveError & { retryAfterSeconds?: number | undefined } =
    status === 500 ? new Internal('an internal error; the log has its place') : (thrown as EnclaveError);
  if (error.retryAfterSeconds !== undefined) response.setHeader('retry-after', error.retryAfterSeconds);
  // RFC 9110, section 15.5.2, demands a challenge; RFC 6750, section 3, has the one for tokens.
  if (status === 401) response.setHeader('www-authenticate', 'Bearer error="invalid_token"');
  // What of a body was not read would be taken for the next request.
  if (hasBody(request) && !request.complete) response.setHeader('connection', 'close');
  const missing = error instanceof SecretsMissing ? { missing: error.missing, refused: error.refused } : {};
  sendJson(response, status, { error: error.message, code: error.code, ...missing });
}

/** RFC 9112, section 6.3. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Answers what is not HTTP, and never reaches a route, in the same form.
 *
 * @param pending the answer to an earlier request of the connection: this one would be taken for it
 */
export function onClientError(error: NodeJS.ErrnoException, socket: Duplex, pending?: ServerResponse): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, code, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'REQUEST_TIMEOUT', 'the request did not arrive in time']
        : [400, 'MALFORMED_HTTP', 'the request is not well-formed HTTP/1.1'];
  endWith(socket, status as number, { error: message as string, code: code as string }, pending);
}

/** Answers CONNECT, whose connection Node takes out of its HTTP server (RFC 9110, section 9.3.6). */
export function refuseConnect(socket: Duplex, pending?: ServerResponse): void {
  // Nobody else listens any more, and without a listener the error would be uncaught.
  socket.on('error', () => socket.destroy());
  const error = { error: 'this server is no proxy: it takes GET, HEAD and POST', code: 'METHOD_NOT_ALLOWED' };
  endWith(socket, 405, error, pending);
}

/**
 * How long a connection stays open after the answer to what is not HTTP. Closed at once, it would be reset by
 * what the peer has sent meanwhile, and the peer might never read the answer.
 */
const LINGER_MS = 1000;
const lingering = new WeakSet<Duplex>();

function endWith(
  socket: Duplex,
  status: number,
  error: { error: string; code: string },
  pending?: ServerResponse,
): void {
  if (pending) {
    pending.once('close', () => socket.destroy());
    return;
  }
  if (!socket.writable) {
    if (!lingering.has(socket)) socket.destroy();
    return;
  }
  lingering.add(socket);
  const body = JSON.stringify(error);
  const allow = status === 405 ? 'Allow: GET, HEAD, POST\r\n' : '';
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n${allow}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    () => setTimeout(() => socket.destroy(), LINGER_MS).unref(),
  );
}
