/** The errors that every HTTP service can answer with, and the base of a service's own errors. */
import { CodedError } from 'sui-enclave/errors';

/** HTTP statuses of errors (RFC 9110, section 15; RFC 6585 for 429 and 431). */
type ErrorStatus =
  | 400
  | 401
  | 403
  | 404
  | 405
  | 408
  | 409
  | 413
  | 415
  | 422
  | 429
  | 431
  | 500
  | 502
  | 503
  | 504;

/** The errors of one area by code. With status 401 the answer includes a challenge for a bearer token. */
export type ErrorTable<Code extends string = string> = Readonly<
  Record<Code, { readonly status: ErrorStatus; readonly meaning: string }>
>;

export interface HttpErrorOptions extends ErrorOptions {
  /** Seconds after which the caller may try again, sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

/** An error that callers see: its code and message in the body, and the status from its area's table. */
export abstract class HttpError<Code extends string = string> extends CodedError<Code> {
  readonly status: ErrorStatus;
  readonly retryAfterSeconds: number | undefined;

  /** Further properties of the answer's body, besides message and code. */
  get details(): Readonly<Record<string, unknown>> {
    return {};
  }

  constructor(table: ErrorTable<Code>, code: Code, message: string, options: HttpErrorOptions = {}) {
    super(code, message, options);
    this.status = table[code].status;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/**
 * Creates the base of an area's error class: `class PriceError extends errorClass(PRICE_ERRORS) {}`,
 * thrown as `new PriceError('PRICE_STALE', 'the price is too old')`. The compiler accepts only codes of the
 * table.
 */
export function errorClass<Code extends string>(table: ErrorTable<Code>) {
  return class extends HttpError<Code> {
    constructor(code: Code, message: string, options?: HttpErrorOptions) {
      super(table, code, message, options);
    }
  };
}

export const SERVER_ERRORS = {
  INVALID_INPUT: {
    status: 400,
    meaning: 'a property is missing, unknown or has an invalid value; the message names it',
  },
  MALFORMED_JSON: {
    status: 400,
    meaning:
      'the body is not JSON in UTF-8, or has a property name with a quote, a backslash or a control character',
  },
  MALFORMED_HTTP: {
    status: 400,
    meaning:
      'the request is not well-formed HTTP/1.1, or its target is neither a path nor an http or https URL',
  },
  NOT_FOUND: { status: 404, meaning: 'the endpoint does not exist' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning:
      'the endpoint does not support the method: see the `Allow` header. CONNECT is refused everywhere',
  },
  REQUEST_TIMEOUT: { status: 408, meaning: 'the request, or its body, did not arrive in time' },
  BODY_TOO_LARGE: { status: 413, meaning: 'the body is larger than `BODY_LIMIT_BYTES`' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning:
      'the body is not `application/json` (at `/sealed`: `application/vnd.sui-enclave.sealed`), has a charset other than UTF-8, or is compressed',
  },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'the headers are over 16 KiB, or there are over 100 of them' },
  REQUEST_REFUSED: {
    status: 400,
    meaning:
      "Express, or a package in the application's own routes or `before`, refused the request: the answer has the status of that error, 400 to 499. Statuses such as 404 and 413 have codes of their own",
  },
  BODY_TAKEN: {
    status: 500,
    meaning: "a handler of the application's `before` has read the body that the endpoint needs",
  },
  INTERNAL: { status: 500, meaning: 'a bug in the server or the application; the log has its location' },
  OVERLOADED: {
    status: 503,
    meaning:
      'too many requests are in progress, or wait for the upstream call of another request: see `Retry-After`',
  },
  UPSTREAM_BUDGET_EXCEEDED: {
    status: 503,
    meaning: '`UPSTREAM_CALLS_PER_MINUTE` is used up: see `Retry-After`',
  },
  ANSWER_TIMEOUT: { status: 504, meaning: 'no answer within `REQUEST_TIMEOUT_MS`' },
} as const satisfies ErrorTable;

export type ServerCode = keyof typeof SERVER_ERRORS;

export class ServerError extends errorClass(SERVER_ERRORS) {}
