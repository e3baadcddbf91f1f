/** What the scripts that talk to Sui have in common: arguments, help, output and exit codes. */
import { readFile } from 'node:fs/promises';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EnclaveUnreachableError } from '../../src/client/errors.ts';
import { ConfigError, EnclaveError } from '../../src/errors.ts';
import { Chain } from './chain.ts';
import { NoNetworkError } from './network.ts';
import { NoSenderError, SignerError } from './signer.ts';

const DONE = 0;
const FAILED = 1;
const NOT_TRIED = 2;

/** The command line can't be used, or a file that it names. */
export class CommandLineError extends EnclaveError {
  readonly code: 'USAGE' | 'UNREADABLE_FILE';

  constructor(code: CommandLineError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What came of a command. */
export interface Outcome {
  readonly status: 'done' | 'unchanged' | 'dry-run' | 'unsigned';
  /** One line for people. */
  readonly title: string;
  /** The members of the JSON, and the lines of the text. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The text, where it is not made of title and fields. */
  readonly text?: string;
  /** Whether it found something that is not as it should be: exit code 1. */
  readonly alarm?: boolean;
}

export interface Input {
  /** The positional arguments, by name; an optional one may be missing. */
  readonly args: Readonly<Record<string, string>>;
  /** The command's own options; one that was not given is missing. */
  readonly options: Readonly<Record<string, string>>;
}

export interface Command {
  readonly name: string;
  readonly purpose: string;
  /** Names of the positional arguments, in order. */
  readonly positionals: readonly string[];
  /** How many of them may be left out, from the end. */
  readonly optional?: number;
  /** The command's own options: what their value is, and what they are for. */
  readonly options: Readonly<Record<string, readonly [value: string, help: string]>>;
  /** What it does, from its arguments alone: the part of a dry run that needs no network. */
  plan(input: Input): readonly string[];
  run(input: Input, chain: Chain): Promise<Outcome>;
}

const COMMON = {
  network: ['<name>', 'mainnet, testnet, devnet or localnet'],
  'rpc-url': ['<url>', 'a gRPC-web node in place of the one of --network'],
  address: ['<address>', "the sender; its key is read from the Sui CLI's keystore"],
  keystore: ['<file>', "the keystore, where it is not the Sui CLI's own"],
  'gas-budget': ['<mist>', 'the most gas to spend; what the node proposes, up to 1 SUI, unless told'],
} as const;

const FLAGS = {
  unsigned: 'print the transaction in base64, for a wallet or a multisig to sign',
  'dry-run': 'say what would be done, have the node simulate it, and send nothing',
  json: "print JSON (after npm run --silent, to keep npm's own lines out of it)",
  help: 'print this',
} as const;

/** The text of `--help`. */
export function helpOf({ name, purpose, positionals, optional = 0, options }: Command): string {
  const usage = positionals.map((word, index) =>
    index < positionals.length - optional ? `<${word}>` : `[<${word}>]`,
  );
  const rows = [
    ...Object.entries({ ...options, ...COMMON }).map(([name, [value, help]]) => [`--${name} ${value}`, help]),
    ...Object.entries(FLAGS).map(([flag, help]) => [`--${flag}`, help]),
  ] as [left: string, right: string][];
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [
    `usage: npm run ${name} -- ${[...usage, '[options]'].join(' ')}`,
    '',
    purpose,
    '',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`),
    '',
    'The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore.',
    '',
    'exit codes: 0 done, or nothing to do; 1 refused or failed; 2 not tried (arguments, files, no answer)',
    'With --dry-run: 0 nothing stands against it, as far as the node simulated it, or as far as can be told where no',
    'node is named; 1 it would fail; 2 the node that is named could not be asked.',
  ].join('\n');
}

/** Runs a command as its process: arguments from the command line, the outcome as the exit code. */
export async function runCommand(command: Command): Promise<void> {
  process.exitCode = await execute(command, process.argv.slice(2));
}

async function execute(command: Command, argv: string[]): Promise<number> {
  // Known before the arguments are: a mistake in them is reported as JSON too.
  const print = printer(argv.includes('--json'));
  let dryRun: readonly string[] | null = null;
  let chain: Chain | undefined;
  try {
    const { values, positionals } = readArguments(command, argv);
    if (values['help']) {
      console.log(helpOf(command));
      return DONE;
    }
    const input = { args: namedArguments(command, positionals), options: ownOptions(command, values) };
    if (values['dry-run']) dryRun = command.plan(input);
    chain = new Chain(values, process.env);
    const outcome = await command.run(input, chain);
    print(outcome, chain.notes, dryRun);
    return outcome.alarm ? FAILED : DONE;
  } catch (error) {
    if (!(error instanceof EnclaveError)) throw error;
    const { code, message } = error;
    if (dryRun === null) {
      print.failure(code, message);
      return isOneOf(error, NEVER_TRIED) || NEVER_TRIED_CODES.includes(code) ? NOT_TRIED : FAILED;
    }
    const unchecked = isOneOf(error, UNCHECKED) || code === 'SUI_NODE_UNREACHABLE';
    const fields = unchecked ? { notChecked: message } : { code, error: message };
    const title = unchecked ? 'Not checked on the chain.' : 'It would fail.';
    print({ status: 'dry-run', title, fields }, chain?.notes ?? [], dryRun);
    // Without a node, the plan is all that was asked for.
    if (unchecked && !chain?.isNamed) return DONE;
    return isOneOf(error, NEVER_TRIED) || NEVER_TRIED_CODES.includes(code) ? NOT_TRIED : FAILED;
  }
}

/** A dry run goes as far as it can without these. */
const UNCHECKED = [NoNetworkError, NoSenderError];

const NEVER_TRIED = [...UNCHECKED, CommandLineError, SignerError, ConfigError, EnclaveUnreachableError];

const NEVER_TRIED_CODES: readonly string[] = [
  'SUI_NODE_UNREACHABLE',
  'SUI_VALUE',
  'POLICY_INVALID',
  'CLIENT_OPTION',
];

function isOneOf(
  error: EnclaveError,
  types: readonly (abstract new (...args: never[]) => EnclaveError)[],
): boolean {
  return types.some((type) => error instanceof type);
}

function readArguments(command: Command, argv: string[]) {
  const text = { type: 'string' } as const;
  const options = Object.fromEntries([
    ...Object.keys({ ...command.options, ...COMMON }).map((name) => [name, text] as const),
    ...Object.keys(FLAGS).map((name) => [name, { type: 'boolean' }] as const),
  ]);
  let parsed: ReturnType<typeof parseNumbersToo>;
  try {
    parsed = parseNumbersToo(argv, options);
  } catch (error) {
    throw usage(command, (error as Error).message);
  }
  if (!parsed.values['help']) {
    const { positionals, optional = 0 } = command;
    const given = parsed.positionals.length;
    if (given > positionals.length)
      throw usage(command, `there are ${given - positionals.length} arguments too many`);
    const missing = positionals.slice(given, positionals.length - optional);
    if (missing.length > 0) throw usage(command, `missing: ${missing.map((word) => `<${word}>`).join(' ')}`);
    if (parsed.values['dry-run'] && parsed.values['unsigned']) {
      throw usage(command, 'give either --dry-run or --unsigned');
    }
  }
  return parsed;
}

/**
 * parseArgs takes -5 for an option, but no option here is a digit: each such argument is hidden behind a NUL, which no
 * argument of a process can hold, and comes out as it was.
 */
function parseNumbersToo(argv: readonly string[], options: ParseArgsOptionsConfig) {
  const args = argv.map((arg) => arg.replace(/^-(?=\.?\d)/, '\0-'));
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const asGiven = Object.entries(values as Record<string, string | boolean | undefined>).map(
    ([name, value]) => [name, typeof value === 'string' ? value.replace('\0', '') : value] as const,
  );
  return {
    values: Object.fromEntries(asGiven),
    positionals: positionals.map((value) => value.replace('\0', '')),
  };
}

/** A mistake on the command line, with the help after it. */
export function usage(command: Command, message: string): CommandLineError {
  return new CommandLineError('USAGE', `${message}\n\n${helpOf(command)}`);
}

function namedArguments({ positionals }: Command, given: readonly string[]): Record<string, string> {
  return Object.fromEntries(given.map((value, index) => [positionals[index] ?? '', value]));
}

function ownOptions({ options }: Command, values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.keys(options).flatMap((name) => (typeof values[name] === 'string' ? [[name, values[name]]] : [])),
  );
}

function printer(asJson: boolean) {
  const print = (outcome: Outcome, notes: readonly string[], plan: readonly string[] | null) => {
    const { status, title, fields, text } = outcome;
    if (asJson) {
      const head = { status, ...(plan && { plan }), ...(notes.length > 0 && { notes }) };
      console.log(JSON.stringify({ ...head, title, ...fields }, jsonValue, 2));
      return;
    }
    for (const note of notes) console.error(note);
    if (text !== undefined) {
      console.log(text);
      return;
    }
    if (plan) console.log(['It would:', ...plan.map((step) => `  - ${step}`), ''].join('\n'));
    console.log([title, ...linesOf(fields)].join('\n'));
    if (plan) console.log('\nNothing was signed or sent.');
  };
  print.failure = (code: string, message: string) => {
    if (asJson) console.log(JSON.stringify({ status: 'failed', code, error: message }, null, 2));
    else console.error(`FAILED (${code}): ${message}`);
  };
  return print;
}

function jsonValue(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Members as lines of name and value, lists and objects below their name. */
function linesOf(fields: object, indent = '  '): string[] {
  const width = Math.max(...Object.keys(fields).map((name) => name.length)) + 2;
  return Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value !== 'object' || value === null) return [`${indent}${name.padEnd(width)}${value ?? '-'}`];
    if (!Array.isArray(value)) return [`${indent}${name}`, ...linesOf(value, `${indent}  `)];
    if (value.length === 0) return [`${indent}${name.padEnd(width)}none`];
    const items = value.flatMap((item) =>
      typeof item === 'object'
        ? [`${indent}  -`, ...linesOf(item, `${indent}    `)]
        : [`${indent}  - ${item}`],
    );
    return [`${indent}${name}`, ...items];
  });
}

/** The text of a file that the command line names. @throws CommandLineError */
export async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandLineError('UNREADABLE_FILE', `${path} can't be read: ${code}`, { cause });
  }
}
