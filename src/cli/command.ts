/**
 * The framework of every command. A command is a module that exports `main`, which `command` makes. The
 * program (`main.ts`) loads the module by the command's name. Only `runAsProcess` touches the process, so
 * tests call `main` directly.
 */
import { readFileSync } from 'node:fs';
import { EnclaveError, isEnclaveError } from 'sui-enclave/errors';
import {
  type Arguments,
  type CommandLine,
  type Environment,
  EXIT,
  formatHelp,
  formatProgram,
  type Given,
  type Options,
  parseCommandLine,
  UsageError,
} from './command_line.ts';
import { escapeControls, escapeControlsInJson } from './printable.ts';
import { readRegularFile } from './read_file.ts';

export { type Environment, EXIT, UsageError } from './command_line.ts';

/** Input and output of a command, apart from files. */
export interface Io {
  /** Writes a string and a newline to standard output. */
  log(text: string): void;
  /** Writes a string and a newline to standard error. */
  error(text: string): void;
  /** Reads standard input to its end. */
  stdin(): string;
  /** Asks the person at the terminal for a line. Undefined without a terminal. */
  ask?(question: string): Promise<string>;
}

/** Runs a command. @param argv the arguments after the command's name @returns the exit code */
export type Main = (argv: readonly string[], env: Environment, io: Io) => Promise<number>;

/** The result of a command: `text` for people, or `json` for programs if it got `--json`. */
export interface Result {
  /** The exit code. Default: `EXIT.done`. */
  readonly exit?: number;
  /** Printed with `--json`; a bigint becomes a string. */
  readonly json: object;
  /** Printed without `--json`. Default: nothing, since the command has logged everything already. */
  readonly text?: string;
}

/** A file that the command line names can't be read. */
export class UnreadableFileError extends EnclaveError {
  readonly code = 'UNREADABLE_FILE';
  readonly exit = EXIT.notTried;
}

/** An error as a command reports it. */
export interface Failure {
  readonly exit: number;
  /** Text for people, printed on standard error. */
  readonly text: string;
  /**
   * Report for programs, with at least `{"error", "code"}`. With `--json`, it is printed on standard output
   * instead of `text`.
   */
  readonly json: { readonly code: string; readonly error: string; readonly [name: string]: unknown };
}

export interface Context {
  readonly env: Environment;
  /**
   * Output of the command. With `--json`, `log` writes to standard error, and standard output has only
   * the result.
   */
  readonly io: Io;
  /** Whether the command got `--json`. */
  readonly asJson: boolean;
}

export interface Command<A extends Arguments, O extends Options> extends CommandLine<A, O> {
  run(parsed: Given<A, O>, context: Context): Promise<Result> | Result;
  /**
   * Returns the exit code for an error of the library, which has no exit code itself. Default: `EXIT.failed`.
   */
  chooseExit?(error: EnclaveError): number | undefined;
  /** Whether unexpected errors are reported without their message, which may contain a secret. */
  readonly handlesSecrets?: boolean;
  /**
   * Returns how an error is reported, or undefined to throw it again.
   *
   * @param failure the usual report; undefined for a fault of the program
   */
  report?(error: unknown, failure: Failure | undefined): Failure | undefined;
}

/** Returns the `main` of a command. */
export function command<const A extends Arguments, const O extends Options>(spec: Command<A, O>): Main {
  return async (argv, env, raw) => {
    const io = escapeOutput(raw);
    if (argv.includes('--help') || argv.includes('-h')) {
      io.log(formatHelp(spec));
      return EXIT.done;
    }
    // The option is not read from the parsed options, since an error in the command line is reported as JSON
    // too.
    const asJson = argv.includes('--json');
    try {
      const parsed = parseCommandLine(spec, argv, env);
      const context = { env, io: asJson ? { ...io, log: io.error } : io, asJson };
      const { exit = EXIT.done, json, text } = await spec.run(parsed, context);
      if (asJson) io.log(formatJson(json));
      else if (text !== undefined) io.log(text);
      return exit;
    } catch (error) {
      const failure = describeFailure(error, spec);
      if (failure === undefined) throw error;
      if (asJson) io.log(formatJson(failure.json));
      else io.error(failure.text);
      return failure.exit;
    }
  };
}

function formatJson(value: object): string {
  const json = JSON.stringify(value, (_name, part) => (typeof part === 'bigint' ? part.toString() : part), 2);
  return escapeControlsInJson(json);
}

/** Escapes control characters in the output, since parts of it may come from a file, a node or a host. */
function escapeOutput({ ask, ...io }: Io): Io {
  return {
    ...io,
    log: (text) => io.log(escapeControls(text)),
    error: (text) => io.error(escapeControls(text)),
    ...(ask && { ask: (question) => ask(escapeControls(question)) }),
  };
}

type Reporting = Pick<CommandLine, 'name' | 'program'> &
  Pick<Command<Arguments, Options>, 'chooseExit' | 'handlesSecrets' | 'report'>;

/** Returns the report of an error; undefined for a fault of the program, which is thrown again. */
function describeFailure(error: unknown, spec: Reporting): Failure | undefined {
  const enclaveFailure = isEnclaveError(error) ? describeEnclaveError(error, spec) : undefined;
  const failure = enclaveFailure ?? (spec.handlesSecrets ? INTERNAL : undefined);
  return spec.report ? spec.report(error, failure) : failure;
}

const INTERNAL: Failure = {
  exit: EXIT.failed,
  text: 'INTERNAL: an internal error',
  json: { status: 'failed', code: 'INTERNAL', error: 'an internal error' },
};

function describeEnclaveError(error: EnclaveError, spec: Reporting): Failure {
  const { code } = error;
  const message =
    error instanceof UsageError ? `${error.message}. See ${formatProgram(spec)} --help` : error.message;
  const errorExit = 'exit' in error && typeof error.exit === 'number' ? error.exit : undefined;
  return {
    exit: errorExit ?? spec.chooseExit?.(error) ?? EXIT.failed,
    text: `${code}: ${message}`,
    json: { status: 'failed', code, error: message },
  };
}

/** Runs a command as this process. */
export async function runAsProcess(main: Main): Promise<void> {
  process.exitCode = await main(process.argv.slice(2), process.env, {
    log: (text) => console.log(text),
    error: (text) => console.error(text),
    stdin: () => readFileSync(0, 'utf8'),
    ...(process.stdin.isTTY && process.stderr.isTTY && { ask: askOnTerminal }),
  });
  // Parts that a service started before it failed must not keep the process alive. The output is written
  // first.
  if (process.exitCode !== EXIT.done) process.stdout.write('', () => process.exit());
}

/** Asks for a line. Returns an empty line at the end of input. */
async function askOnTerminal(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  // The interface has no line editing of its own, so that Ctrl-C still ends the process.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}

/**
 * Returns the content of a file that the command line names.
 *
 * @param hint sentence about where the file comes from, for the error if it does not exist
 * @throws UnreadableFileError
 */
export async function readFileArgument(path: string, hint?: string): Promise<Buffer> {
  try {
    return readRegularFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const advice = hint !== undefined && code === 'ENOENT' ? `. ${hint}` : '';
    throw new UnreadableFileError(`${path} can't be read: ${code}${advice}`, { cause });
  }
}
