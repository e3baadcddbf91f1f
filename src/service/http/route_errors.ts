/** Decides which errors of an application's own routes are the caller's fault. */
import { STATUS_CODES } from 'node:http';
import { EnclaveError } from 'sui-enclave/errors';
import { type ServerCode, ServerError } from '../errors.ts';
import { isInstance, messageOf } from '../thrown.ts';

/** Codes of statuses that have one meaning here. */
const CODES: Readonly<Record<number, ServerCode>> = {
  400: 'INVALID_INPUT',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  408: 'REQUEST_TIMEOUT',
  413: 'BODY_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  431: 'HEADERS_TOO_LARGE',
};

/**
 * Properties by which errors of HTTP clients are recognised, since an upstream's 404 is not the caller's
 * fault. (`createError(404, error)` of http-errors returns `error` itself.)
 */
const MARKS_OF_CLIENTS = ['response', 'request', 'config', 'cause', 'reason', 'isAxiosError'];

class RouteRefusal extends ServerError {
  override readonly status: ServerError['status'];

  constructor(status: number, message: string) {
    super(CODES[status] ?? 'REQUEST_REFUSED', message);
    // The status may be one that the table does not have.
    this.status = status as ServerError['status'];
  }
}

/**
 * Turns an error that Express or http-errors made with a status of 400 to 499 into an error that callers
 * see. Returns any other value unchanged.
 *
 * @param redact removes secrets from a message that the error exposes
 */
export function asRefusal(thrown: unknown, redact: (message: string) => string): unknown {
  try {
    const status = findStatus(thrown);
    if (status === undefined) return thrown;
    const { expose } = thrown as { expose?: unknown };
    const message = expose === true ? messageOf(thrown) : undefined;
    return new RouteRefusal(status, message === undefined ? `refused: ${phraseOf(status)}` : redact(message));
  } catch {
    // The error has properties that throw.
    return thrown;
  }
}

function findStatus(thrown: unknown): number | undefined {
  if (!isInstance(thrown, Error) || isInstance(thrown, EnclaveError)) return undefined;
  const { status, statusCode, expose } = thrown as {
    status?: unknown;
    statusCode?: unknown;
    expose?: unknown;
  };
  if (typeof status !== 'number' || status !== statusCode || !(status >= 400 && status <= 499))
    return undefined;
  // This is the check of `isHttpError` in http-errors. If Express' router can't decode a path, its error
  // has only a status.
  if (typeof expose !== 'boolean' && !isInstance(thrown, URIError)) return undefined;
  if (!Number.isInteger(status) || MARKS_OF_CLIENTS.some((name) => name in thrown)) return undefined;
  return status;
}

function phraseOf(status: number): string {
  return STATUS_CODES[status] ?? String(status);
}
