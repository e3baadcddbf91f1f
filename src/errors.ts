/**
 * The base of every error that is thrown on purpose, and the causes that an application's own errors
 * extend. Nothing here knows of HTTP: `src/server/http/errors.ts` maps a cause to its status, in one table.
 *
 * Messages are for the caller and leave the process: never put a secret, a URL with a query or the text
 * of a foreign error into one.
 */
export abstract class EnclaveError extends Error {
  /** Stable, upper-case with underscores, one per class: programs match on it, people read the message. */
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * The error of an area that tells its causes apart by their codes alone: `class AttestationError extends
 * CodedError<AttestationCode>`. The union lets the compiler check a `switch (error.code)`. A cause that carries
 * properties of its own has a class of its own.
 */
export abstract class CodedError<Code extends string> extends EnclaveError {
  readonly code: Code;

  /** @param message for the caller: see EnclaveError */
  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A mistake in the environment, in app.yaml or in an application: the process must not start with it. */
export class ConfigError extends EnclaveError {
  readonly code = 'CONFIG';
}

/**
 * A mistake in an application's code that shows at the start or in a request. Its message is for the author,
 * by the log: callers get no more of it than of any other mistake of ours.
 */
export class ApplicationMistake extends EnclaveError {
  readonly code = 'APPLICATION';
}

/** The request is not of the shape that the endpoint takes. */
export class InvalidInput extends EnclaveError {
  readonly code: string = 'INVALID_INPUT';
}

/** The request does not show who its caller is: its credential is missing, false or over. */
export abstract class Unauthenticated extends EnclaveError {}

/** It is known who the caller is, and that they may not have this. */
export abstract class Forbidden extends EnclaveError {}

/** This caller has asked too often. */
export abstract class TooManyRequests extends EnclaveError {
  /** Seconds after which the caller may try again. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The request is well-formed, yet there is no answer that could be signed for it. */
export abstract class Unacceptable extends EnclaveError {}

/** A service that the application depends on gave no usable answer. */
export abstract class UpstreamFailed extends EnclaveError {}

/** A service that the application depends on gave no answer in time. */
export abstract class UpstreamTimeout extends EnclaveError {}

/** This server can't answer now; the same request may work later. */
export abstract class Unavailable extends EnclaveError {
  /** Seconds after which a caller may try again, where that can be told. */
  readonly retryAfterSeconds: number | undefined = undefined;
}
