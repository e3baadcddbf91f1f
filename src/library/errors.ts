/** Marks the errors of every copy of this module, since each published package contains its own copy. */
const MARK = Symbol.for('sui-enclave.EnclaveError');

/**
 * The base of every error that is thrown on purpose. This module knows nothing of HTTP: the errors that
 * the server answers with, and their statuses, are in `src/service/errors.ts`.
 *
 * Messages are for the caller and leave the process: never put a secret, a URL with a query or the text
 * of a foreign error into one.
 */
export abstract class EnclaveError extends Error {
  /** Puts the mark into the prototype, so that printing an error does not show it. */
  static {
    Object.defineProperty(EnclaveError.prototype, MARK, { value: true });
  }

  /** Stable code in upper case with underscores, for programs. People read the message. */
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * The base of the errors of one area, whose causes differ only in their code: `class AttestationError extends
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
 * A mistake in the environment, in app.yaml or in an application: the process must not start with it. Using
 * an option or a method that the client of an upstream lacks is such a mistake too. If it shows only in a
 * request, the request is answered as for an ApplicationMistake.
 */
export class ConfigError extends EnclaveError {
  readonly code = 'CONFIG';
}

/**
 * A mistake in an application's code that shows at the start or in a request. Its message is for the author,
 * in the log. Callers learn no more about it than about any other bug.
 */
export class ApplicationMistake extends EnclaveError {
  readonly code = 'APPLICATION';
}

/** Returns whether this is an EnclaveError, of this copy of the class or of another package's copy. */
export function isEnclaveError(error: unknown): error is EnclaveError {
  return error instanceof Error && MARK in error;
}

/** Returns whether this is a ConfigError, of this copy of the class or of another package's copy. */
export function isConfigError(error: unknown): error is ConfigError {
  return isEnclaveError(error) && error.code === 'CONFIG';
}
