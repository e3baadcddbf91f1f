import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LogFn,
  type Logger,
  pino,
} from 'pino';
import { ApplicationMistake, ConfigError, EnclaveError } from 'sui-enclave/errors';
import { LogOutput } from './log_output.ts';
import { Redactor } from './redact.ts';

export type { Logger };

/** Under which a log keeps its redactor; child logs inherit it. */
const REDACTOR = Symbol('redactor');

export interface LogOptions {
  /** For development only: prints the messages of foreign errors and their causes, which may contain anything. */
  readonly withMessages?: boolean;
}

/** Writes JSON lines to standard output, or to `destination`. Logging never throws, and never waits for a reader. */
export function createLog(
  level: string,
  destination?: DestinationStream,
  { withMessages = false }: LogOptions = {},
): Logger {
  const redactor = new Redactor((error) => describeError(error, withMessages));
  const onLost = (lines: number) =>
    log.warn({ lines }, 'log lines were lost: they could not be written in time');
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    // The redactor has described the error already; pino's serializer would do it again.
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
  const log: Logger = pino(options, destination ?? new LogOutput(1, onLost));
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

/** From now on the log and its children redact properties with these names. */
export function hideFromLog(log: Logger, names: readonly string[]): void {
  (log as unknown as { [REDACTOR]: Redactor })[REDACTOR].add(names);
}

function redactArguments(redactor: Redactor, [first, ...rest]: readonly unknown[]): Parameters<LogFn> {
  const values = rest.map((value) => redactor.value(value));
  if (typeof first !== 'object' || first === null) {
    return [redactor.value(first), ...values] as Parameters<LogFn>;
  }
  const line = redactor.line(first);
  // Without a message for the line, pino would print the error's message.
  if (values[0] === undefined && 'err' in line) return [line, 'error'];
  return [line, ...values] as Parameters<LogFn>;
}

function printLess(log: Logger, method: LogFn): void {
  try {
    method.call(log, {}, 'a log line could not be printed');
  } catch {
    // The destination itself fails.
  }
}

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
