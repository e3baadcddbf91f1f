import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import {
  EnclaveError,
  InvalidInput,
  Unacceptable,
  Unavailable,
  UpstreamFailed,
  UpstreamTimeout,
} from '../errors.ts';
import { NsmError } from '../nsm/errors.ts';
import { SecretsMissing } from '../secrets.ts';
import { logOf } from './request_log.ts';
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
  [NotFound, 404],
  [MethodNotAllowed, 405],
  [RequestTimeout, 408],
  [BodyTooLarge, 413],
  [UnsupportedMediaType, 415],
  [Unacceptable, 422],
  [UpstreamFailed, 502],
  [Unavailable, 503],
  [NsmError, 503],
  [UpstreamTimeout, 504],
  [AnswerTimeout, 504],
];

/** What Express and its body parser throw, by their `type`. */
function fromExpress(error: unknown, bodyLimitBytes: number): EnclaveError | undefined {
  const { type, status } = (error ?? {}) as { type?: unknown; status?: unknown };
  switch (type) {
    case 'entity.too.large':
      return new BodyTooLarge(`the body is larger than ${bodyLimitBytes} bytes`);
    case 'entity.parse.failed':
      return new MalformedJson('the body is not JSON: one object in UTF-8 is wanted');
    case 'encoding.unsupported':
      return new UnsupportedMediaType('the body is compressed: send it without Content-Encoding');
    case 'charset.unsupported':
      return new UnsupportedMediaType('the charset must be utf-8');
    case 'request.aborted':
    case 'request.size.invalid':
      return new InvalidInput('the body is not as long as Content-Length says');
  }
  // Express itself: a path that is not percent-encoded UTF-8.
  return status === 400 ? new InvalidInput('the request is malformed') : undefined;
}

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

/** The one place where an error becomes an answer: `{"error": text, "code": text}`. */
export function errorHandler(bodyLimitBytes: number): ErrorRequestHandler {
  return (thrown, _request, response, _next) => {
    const error = thrown instanceof EnclaveError ? thrown : fromExpress(thrown, bodyLimitBytes);
    const status = STATUS_OF.find(([cause]) => error instanceof cause)?.[1] ?? 500;
    if (status >= 500) logOf(response).warn({ err: thrown }, 'request failed');
    if (response.headersSent) {
      // Too late for another answer, but one that was cut short must not look complete.
      if (!response.writableEnded) response.destroy();
      return;
    }
    const shown = status === 500 || !error ? new Internal('an internal error; the log has its place') : error;
    if (shown instanceof Unavailable && shown.retryAfterSeconds !== undefined) {
      response.setHeader('retry-after', shown.retryAfterSeconds);
    }
    const missing = shown instanceof SecretsMissing ? { missing: shown.missing } : {};
    sendJson(response, status, { error: shown.message, code: shown.code, ...missing });
  };
}

/** Answers what is not HTTP, which never reaches a route, in the same form. */
export function onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, code, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'REQUEST_TIMEOUT', 'the request did not arrive in time']
        : [400, 'MALFORMED_HTTP', 'the request is not well-formed HTTP/1.1'];
  const body = JSON.stringify({ error: message, code });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status as number]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
