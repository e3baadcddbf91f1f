/** Mark of an error of any copy of this module: each published package has a copy of its own. */
const MARK = Symbol.for('sui-enclave.EnclaveError');

/**
 * The base of every error that is thrown on purpose. Nothing here knows HTTP: the errors that the server
 * answers with, and their statuses, are in `src/service/errors.ts`.
 *
 * Messages are for the caller and leave the process: never put a secret, a URL with a query or the text
 * of a foreign error into one.
 */
export abstract class EnclaveError extends Error {
  /** The mark is in the prototype, so that printing an error does not show it. */
  static {
    Object.defineProperty(EnclaveError.prototype, MARK, { value: true });
  }

  /** Stable, upper-case with underscores, one per class: programs match on it, people read the message. */
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * The base of an area's errors, which distinguishes causes by code alone: `class AttestationError extends
 * CodedError<AttestationCode>`. The union lets the compiler check a `switch (error.code)`. A cause with
 * properties of its own has its own class.
 */
export abstract class CodedError<Code extends string> extends EnclaveError {
  readonly code: Code;

  /** @param message for the caller: see EnclaveError */
  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * A mistake in the environment, in app.yaml or in an application: the process must not start with it. An
 * option or a method that the client of an upstream lacks is one too. Where it shows in a request, it is
 * answered as an ApplicationMistake is.
 */
export class ConfigError extends EnclaveError {
  readonly code = 'CONFIG';
}

/**
 * A mistake in an application's code that shows at the start or in a request. Its message is for the author,
 * by the log: callers learn no more about it than about any other bug of ours.
 */
export class ApplicationMistake extends EnclaveError {
  readonly code = 'APPLICATION';
}

/** Returns whether this is an EnclaveError, of this copy of the class or of another package's. */
export function isEnclaveError(error: unknown): error is EnclaveError {
  return error instanceof Error && MARK in error;
}

/** Returns whether this is a ConfigError, of this copy of the class or of another package's. */
export function isConfigError(error: unknown): error is ConfigError {
  return isEnclaveError(error) && error.code === 'CONFIG';
}
