import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LogFn,
  type Logger,
  pino,
} from 'pino';
import { ApplicationMistake, EnclaveError } from '../errors.ts';
import { Redactor } from './redact.ts';

export type { Logger };

/** Where a log keeps its net; its children inherit it. */
const REDACTOR = Symbol('redactor');

/** JSON lines on standard output (or `destination`, for tests). A call of it never throws. */
export function createLog(level: string, destination?: DestinationStream): Logger {
  const redactor = new Redactor(describeError);
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    // The redactor has described it; pino's own would take it for an error once more.
    serializers: { err: (described: unknown) => described },
    hooks: {
      logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn) {
        try {
          method.apply(this, redactArguments(redactor, args));
        } catch {
          printLess(this, method);
        }
      },
    },
  };
  const log = destination ? pino(options, destination) : pino(options);
  const { child, setBindings } = log;
  return Object.assign(log, {
    [REDACTOR]: redactor,
    child(this: Logger, bindings: Bindings, options?: ChildLoggerOptions) {
      return Reflect.apply(child, this, [bindings && redactor.line(bindings), options]);
    },
    setBindings(this: Logger, bindings: Bindings) {
      setBindings.call(this, redactor.line(bindings));
    },
  } as object);
}

/** From now on neither the log nor a child of it prints the value of a member that has one of these names. */
export function hideFromLog(log: Logger, names: readonly string[]): void {
  (log as unknown as { [REDACTOR]: Redactor })[REDACTOR].add(names);
}

function redactArguments(redactor: Redactor, [first, ...rest]: readonly unknown[]): Parameters<LogFn> {
  const values = rest.map((value) => redactor.value(value));
  if (typeof first !== 'object' || first === null) {
    return [redactor.value(first), ...values] as Parameters<LogFn>;
  }
  const members = redactor.line(first);
  // Without a text of the line's own, pino would print the error's.
  if (values[0] === undefined && 'err' in members) return [members, 'error'];
  return [members, ...values] as Parameters<LogFn>;
}

function printLess(log: Logger, method: LogFn): void {
  try {
    method.call(log, {}, 'a line that can not be printed');
  } catch {
    // The destination itself fails.
  }
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
