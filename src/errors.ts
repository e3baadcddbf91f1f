/**
 * The base of every error that is thrown on purpose, and the causes that an application's own errors
 * extend. Nothing here knows of HTTP: `src/http/errors.ts` maps a cause to its status, in one table.
 *
 * Messages are for the caller and may leave the process: never put a secret, a URL with a query or the
 * text of a foreign error into one.
 */
export abstract class EnclaveError extends Error {
  /** Stable, upper-case with underscores, one per class: programs match on it, people read the message. */
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}
