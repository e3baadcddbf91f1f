import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LogFn,
  type Logger,
  pino,
} from 'pino';
import { LogOutput } from './log_output.ts';
import { Redactor } from './redact.ts';
import { describeError } from './thrown.ts';

export type { Logger };

/** Key under which a log keeps its redactor; child logs inherit it. */
const REDACTOR = Symbol('redactor');

export interface LogOptions {
  /**
   * Whether to print the messages of foreign errors and their causes, which may contain anything. For
   * development only.
   */
  readonly withMessages?: boolean;
}

/**
 * Creates a log that writes JSON lines to standard output, or to `destination`. Logging never throws, and
 * never waits for a reader.
 */
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
    // The redactor has already described the error. pino's serializer would describe this description.
    serializers: { err: (description: unknown) => description },
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
      return Reflect.apply(child, this, [bindings && redactor.redactLine(bindings), options]);
    },
    setBindings(this: Logger, bindings: Bindings) {
      setBindings.call(this, redactor.redactLine(bindings));
    },
  } as object);
}

/** Makes the log and its children redact properties with these names. */
export function hideFromLog(log: Logger, names: readonly string[]): void {
  (log as unknown as { [REDACTOR]: Redactor })[REDACTOR].add(names);
}

function redactArguments(
  redactor: Redactor,
  [first, ...furtherArguments]: readonly unknown[],
): Parameters<LogFn> {
  const values = furtherArguments.map((value) => redactor.redactValue(value));
  if (typeof first !== 'object' || first === null) {
    return [redactor.redactValue(first), ...values] as Parameters<LogFn>;
  }
  const line = redactor.redactLine(first);
  // If the line had no message, pino would print the error's message.
  if (values[0] === undefined && 'err' in line) return [line, 'error'];
  return [line, ...values] as Parameters<LogFn>;
}

function printLess(log: Logger, method: LogFn): void {
  try {
    method.call(log, {}, 'a log line could not be printed');
  } catch {
    // The log's destination itself fails.
  }
}
