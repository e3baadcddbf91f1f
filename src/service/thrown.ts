/**
 * Reads thrown values. Applications and their packages may throw anything, even proxies and objects whose
 * getters throw. Reading such a value must not end the process, since its key would be lost.
 */
import { ApplicationMistake, ConfigError, EnclaveError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';

/** Maximum number of nested causes that are printed. This limit also ends cycles. */
const MAX_CAUSES = 4;
/** Maximum length of a message, in UTF-16 code units. */
const MAX_MESSAGE = 8192;
/** Maximum length of the part of a stack that is searched for locations, in UTF-16 code units. */
const MAX_STACK = 65_536;
/** Maximum length of a location, in UTF-16 code units. */
const MAX_PLACE = 1024;
const MAX_PLACES = 50;

/** Returns the result of `read`, or undefined if it throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Returns the result of `instanceof`, or false for a value on which it throws. */
export function isInstance<T>(thrown: unknown, type: abstract new (...args: never[]) => T): thrown is T {
  return attempt(() => thrown instanceof type) ?? false;
}

/**
 * Returns the part of an error that may be logged. Messages of this project's errors are written for the
 * caller. The message and properties of a foreign error may contain anything (a URL with a key, a piece of
 * the input), so only its class, its code and the locations in its stack are logged. Of its causes, only the
 * class and the code are logged. Never throws.
 *
 * @param withMessages whether to include the messages of foreign errors, and the stacks of causes. For
 *   development only
 */
export function describeError(error: unknown, withMessages = false): Record<string, unknown> {
  return describe(error, withMessages, 0);
}

function describe(error: unknown, withMessages: boolean, depth: number): Record<string, unknown> {
  if (!isInstance(error, Error)) return { type: typeof error };
  const isOurs = isInstance(error, EnclaveError);
  const hasLocations = !isOurs || isInstance(error, ApplicationMistake) || isInstance(error, ConfigError);
  const cause = attempt(() => error.cause);
  return {
    type: classOf(error),
    code: codeOf(error),
    ...((isOurs || withMessages) && { message: messageOf(error) }),
    ...(hasLocations && (depth === 0 || withMessages) && { stack: findPlaces(error) }),
    ...(isInstance(cause, Error) &&
      depth < MAX_CAUSES && { cause: describe(cause, withMessages, depth + 1) }),
  };
}

/** Returns the name of the error's class, or the type of a value that is not an error. */
export function classOf(thrown: unknown): string {
  if (!isInstance(thrown, Error)) return typeof thrown;
  const name: unknown = attempt(() => thrown.constructor.name);
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? name : 'Error';
}

/**
 * Returns the `code` that Node, OpenSSL and most libraries give to their errors; undefined if it does not
 * look like a code.
 */
export function codeOf(thrown: unknown): string | undefined {
  const code = attempt(() => (thrown instanceof Error && 'code' in thrown ? thrown.code : undefined));
  return typeof code === 'string' && /^[A-Z][A-Z0-9_/]{0,63}$/.test(code) ? code : undefined;
}

/**
 * Returns the message, or undefined. Only the message of an error of this project may be logged: see
 * EnclaveError.
 */
export function messageOf(thrown: unknown): string | undefined {
  const message = textIn(attempt(() => (thrown as Error).message));
  if (message === undefined || message.length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE)}… (${quantity(message.length, 'character')})`;
}

/**
 * Returns the locations in a stack, at most 50. The message before them is skipped, since its lines could
 * look like locations. Returns undefined if the stack can't be read.
 */
export function findPlaces(thrown: unknown): string[] | undefined {
  const stack = textIn(attempt(() => (thrown as Error).stack));
  const message = textIn(attempt(() => (thrown as Error).message));
  if (stack === undefined || message === undefined) return undefined;
  const at = stack.indexOf(message);
  // The stack contains the original message. If the message has changed since, the end of the original
  // message is unknown.
  if (at === -1) return undefined;
  const start = at + message.length;
  const places = stack
    .slice(start, start + MAX_STACK)
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => (line.length > MAX_PLACE ? `${line.slice(0, MAX_PLACE)}…` : line));
  return places.length > MAX_PLACES ? [...places.slice(0, MAX_PLACES), '…'] : places;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
