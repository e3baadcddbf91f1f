/**
 * The framework of every command. A command is a module that exports `main`, made by `command`; run as a program, it
 * passes `main` to `runAsProcess`. Only `runAsProcess` touches the process, so tests call `main` directly.
 *
 * A command imports lazily what only its action needs: `--help` and a usage error must not wait for it.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EnclaveError } from 'sui-enclave/errors';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Input and output of a command, apart from files. */
export interface Io {
  /** Writes a string and a newline to standard output. */
  log(text: string): void;
  /** Writes a string and a newline to standard error. */
  error(text: string): void;
  /** Reads standard input to its end. */
  stdin(): string;
  /** Asks the person at the terminal for a line; missing where there is no terminal. */
  ask?(question: string): Promise<string>;
}

/** @param argv the arguments after the command's name @returns the exit code */
export type Main = (argv: readonly string[], env: Environment, io: Io) => Promise<number>;

/** The result of a command: `text` for people, or `json` for programs if it got `--json`. */
export interface Result {
  /** Default: `EXIT.done`. */
  readonly exit?: number;
  /** Printed with `--json`; a bigint becomes a string. */
  readonly json: object;
  /** Printed without `--json`. Default: nothing, as the command has logged all of it. */
  readonly text?: string;
}

/** The exit codes of all commands. */
export const EXIT = {
  /** Done, or nothing to do. */
  done: 0,
  /** Refused or failed. */
  failed: 1,
  /** Not tried: the command line, or something that it names, can't be used. */
  notTried: 2,
} as const;

/** The command line can't be used. */
export class UsageError extends EnclaveError {
  readonly code = 'USAGE';
  readonly exit = EXIT.notTried;

  /** @param usage what `--help` prints, to follow the message */
  constructor(message: string, usage?: string) {
    super(usage === undefined ? message : `${message}\n\n${usage}`);
  }
}

/** A file that the command line names can't be read. */
export class UnreadableFileError extends EnclaveError {
  readonly code = 'UNREADABLE_FILE';
  readonly exit = EXIT.notTried;
}

/** An error as a command reports it. */
export interface Failure {
  readonly exit: number;
  /** For people, printed on standard error. */
  readonly text: string;
  /** For programs, printed on standard output in place of `text` if the command got `--json`: `{"error", "code"}` at least. */
  readonly json: { readonly code: string; readonly error: string; readonly [name: string]: unknown };
}

type Values<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ options: Options; allowPositionals: true }>
>['values'];

export interface Context {
  readonly env: Environment;
  /** With `--json`, `log` writes to standard error: standard output holds nothing but the result. */
  readonly io: Io;
  /** Whether the command got `--json`. */
  readonly asJson: boolean;
}

export interface Command<Options extends ParseArgsOptionsConfig> {
  /** The output of `--help`, which ends with a line about `--json` unless it mentions that option itself. */
  readonly usage: string;
  /** In the format of parseArgs, without `--help` and `--json`: every command has these. */
  readonly options: Options;
  /** Names of the positional arguments, in order. Default: none. */
  readonly positionals?: readonly string[];
  /** How many of them may be omitted, from the end. Default: 0. */
  readonly optional?: number;
  /** Whether the last positional argument may be repeated. */
  readonly repeats?: boolean;
  run(
    given: { readonly values: Values<Options>; readonly positionals: readonly string[] },
    context: Context,
  ): Promise<Result> | Result;
  /** Default: `commandFailure`. Undefined: a fault of the program, which is thrown on. */
  report?(error: unknown): Failure | undefined | Promise<Failure | undefined>;
}

/** The `main` of a command. */
export function command<const Options extends ParseArgsOptionsConfig>(spec: Command<Options>): Main {
  const usage = spec.usage.includes('--json') ? spec.usage : `${spec.usage}\n\n${JSON_HELP}`;
  const { report = commandFailure } = spec;
  return async (argv, env, io) => {
    if (argv.includes('--help')) {
      io.log(usage);
      return EXIT.done;
    }
    // Not from the parsed options: an error in the command line is reported as JSON too.
    const asJson = argv.includes('--json');
    try {
      const given = parse({ ...spec, usage }, argv);
      const {
        exit = EXIT.done,
        json,
        text,
      } = await spec.run(given, {
        env,
        io: asJson ? { ...io, log: io.error } : io,
        asJson,
      });
      if (asJson) io.log(formatJson(json));
      else if (text !== undefined) io.log(text);
      return exit;
    } catch (error) {
      const failure = await report(error);
      if (failure === undefined) throw error;
      if (asJson) io.log(formatJson(failure.json));
      else io.error(failure.text);
      return failure.exit;
    }
  };
}

const JSON_HELP =
  "--json prints the result, or the error, as JSON (after npm run --silent, to keep npm's own lines out of it).";

function formatJson(value: object): string {
  return JSON.stringify(value, (_name, each) => (typeof each === 'bigint' ? each.toString() : each), 2);
}

/** Every error with a code; undefined for all others. */
export function commandFailure(error: unknown): Failure | undefined {
  if (!(error instanceof EnclaveError)) return undefined;
  const { code, message } = error;
  return {
    exit: error instanceof UsageError ? EXIT.notTried : EXIT.failed,
    text: `${code}: ${message}`,
    json: { status: 'failed', code, error: message },
  };
}

/** How a command that handles secrets reports an unexpected error, whose message may contain one. */
export const INTERNAL_FAILURE: Failure = {
  exit: EXIT.failed,
  text: 'INTERNAL: an internal error',
  json: { status: 'failed', code: 'INTERNAL', error: 'an internal error' },
};

/** Runs a command as this process. */
export async function runAsProcess(main: Main): Promise<void> {
  process.exitCode = await main(process.argv.slice(2), process.env, {
    log: (text) => console.log(text),
    error: (text) => console.error(text),
    stdin: () => readFileSync(0, 'utf8'),
    ...(process.stdin.isTTY && process.stderr.isTTY && { ask: askOnTerminal }),
  });
  // What a service had started before it failed must not keep the process. The output is written first.
  if (process.exitCode !== EXIT.done) process.stdout.write('', () => process.exit());
}

/** Returns an empty line at the end of input. */
async function askOnTerminal(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  // Without line editing of its own, Ctrl-C still ends the process.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}

/** @throws UsageError that names the argument */
function parse<Options extends ParseArgsOptionsConfig>(
  { usage, options, positionals: names = [], optional = 0, repeats = false }: Command<Options>,
  argv: readonly string[],
) {
  const { values, positionals } = parseNumbersToo(argv, options, usage);
  const unexpected = repeats ? undefined : positionals[names.length];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`, usage);
  const missing = names.slice(positionals.length, names.length - optional);
  if (missing.length > 0) {
    throw new UsageError(`missing: ${missing.map((name) => `<${name}>`).join(' ')}`, usage);
  }
  return { values, positionals };
}

/**
 * parseArgs mistakes -5 for an option, but no option here is a digit: each such argument is hidden behind a NUL, which no
 * argument of a process can hold, and restored afterwards.
 */
function parseNumbersToo<Options extends ParseArgsOptionsConfig>(
  argv: readonly string[],
  options: Options,
  usage: string,
) {
  const restore = <T>(value: T) => (typeof value === 'string' ? value.replace('\0', '') : value);
  const args = argv.map((arg) => arg.replace(/^-(?=\.?\d)/, '\0-'));
  try {
    const { values, positionals } = parseArgs({
      args,
      options: { ...options, json: { type: 'boolean' } },
      allowPositionals: true,
    });
    const own = Object.entries(values).filter(([name]) => name !== 'json');
    const restored = own.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(restore) : restore(value),
    ]);
    return {
      values: Object.fromEntries(restored) as Values<Options>,
      positionals: positionals.map(restore),
    };
  } catch (error) {
    // The parser adds advice about a leading dash, which helps nobody here.
    throw new UsageError((error as Error).message.split(/\.\s/)[0] ?? '', usage);
  }
}

/** Says where registers come from, to users who don't have any yet. */
export const PCRS_HINT =
  '`make` writes out/nitro.pcrs when it builds the image, and `make dev ATTEST=emulated` writes out/dev.pcrs, or out/dev-<name>.pcrs for another application than weather';

/**
 * The content of a file that the command line names.
 *
 * @param hint says where the file comes from
 * @throws UnreadableFileError
 */
export async function readFileArgument(path: string, hint?: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const more = hint !== undefined && code === 'ENOENT' ? `. ${hint}` : '';
    throw new UnreadableFileError(`${path} can't be read: ${code}${more}`, { cause });
  }
}

/** The value of an option that is an integer. @throws UsageError */
export function integer(option: string, text: string, from: number, to: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= from && number <= to)) {
    throw new UsageError(`--${option} must be an integer from ${from} to ${to}`);
  }
  return number;
}
