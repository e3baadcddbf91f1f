import { type DestinationStream, type LogFn, type Logger, pino } from 'pino';
import { ApplicationMistake, EnclaveError } from './errors.ts';

export type { Logger };

/**
 * Names whose values are never printed, at the top of a log line and one level down. A net, not the rule:
 * the rule is that secrets, tokens, salts and proofs are never handed to the log.
 */
const SECRET_NAMES = [
  'API_KEY',
  'apiKey',
  'authorization',
  'cookie',
  'jwt',
  'key',
  'password',
  'privateKey',
  'proof',
  'salt',
  'secret',
  'secrets',
  'seed',
  'token',
];

/** JSON lines on standard output (or `destination`, for tests). */
export function createLog(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: SECRET_NAMES.flatMap((name) => [name, `*.${name}`]),
    serializers: { err: describeError },
    hooks: {
      // Without a text of the line's own, pino would print the error's.
      logMethod(args: Parameters<LogFn>, method: LogFn) {
        const [first, message] = args as readonly unknown[];
        const error = first instanceof Error ? first : (first as { err?: unknown } | null)?.err;
        if (error instanceof Error && message === undefined) {
          const members = first instanceof Error ? { err: first } : (first as object);
          method.apply(this, [members, 'error']);
          return;
        }
        method.apply(this, args);
      },
    },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * What of an error may be printed. Our own messages are written for the caller; a foreign error's message
 * and members may hold anything (a URL with its key, a piece of the input), so only its class, its code
 * and the places in its stack are kept.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (error instanceof ApplicationMistake) {
    return { type: error.name, code: error.code, message: error.message, stack: placesOf(error) };
  }
  if (error instanceof EnclaveError) return { type: error.name, code: error.code, message: error.message };
  if (!(error instanceof Error)) return { type: typeof error };
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    type: typeof error.constructor === 'function' ? error.constructor.name : 'Error',
    code: typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : undefined,
    stack: placesOf(error),
  };
}

/** A stack without the message before it, whose lines may look like places. */
function placesOf({ stack, message }: Error): string[] | undefined {
  if (typeof stack !== 'string' || typeof message !== 'string') return undefined;
  const at = stack.indexOf(message);
  // A message that was changed after the stack was made stands there in its old form: nothing is sure then.
  if (at === -1) return undefined;
  return stack
    .slice(at + message.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
}
