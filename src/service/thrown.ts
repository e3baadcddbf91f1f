/** What may be said of a thrown value. */
import { ApplicationMistake, ConfigError, EnclaveError } from 'sui-enclave/errors';

/** Causes of causes beyond this depth are not printed, so that a cycle ends. */
const MAX_CAUSES = 4;

/**
 * The part of an error that may be logged. Messages of this project's errors are written for the caller. The message
 * and properties of a foreign error may contain anything (a URL with a key, a piece of the input), so only its class,
 * its code and the locations in its stack are logged, and of its causes the class and the code.
 *
 * @param withMessages for development only: also the messages of foreign errors, and the stacks of causes
 */
export function describeError(error: unknown, withMessages = false): Record<string, unknown> {
  return describe(error, withMessages, 0);
}

function describe(error: unknown, withMessages: boolean, depth: number): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const isOurs = error instanceof EnclaveError;
  const isPlaced = !isOurs || error instanceof ApplicationMistake || error instanceof ConfigError;
  const { cause } = error;
  return {
    type: typeof error.constructor === 'function' ? error.constructor.name : 'Error',
    code: codeOf(error),
    ...((isOurs || withMessages) && { message: error.message }),
    ...(isPlaced && (depth === 0 || withMessages) && { stack: placesOf(error) }),
    ...(cause instanceof Error && depth < MAX_CAUSES && { cause: describe(cause, withMessages, depth + 1) }),
  };
}

/** The `code` that Node, OpenSSL and most libraries give to their errors; undefined if it does not look like one. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_/]{0,63}$/.test(code) ? code : undefined;
}

/** The stack without the message that precedes it, whose lines could look like locations. */
export function placesOf({ stack, message }: Error): string[] | undefined {
  if (typeof stack !== 'string' || typeof message !== 'string') return undefined;
  const at = stack.indexOf(message);
  // The stack contains the original message: if the message was changed since, its end is unknown.
  if (at === -1) return undefined;
  return stack
    .slice(at + message.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
}
