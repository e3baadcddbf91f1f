/** The framework of the commands that talk to Sui: positional arguments by name, common options, dry runs and output. */
import { EnclaveError } from '../../src/errors.ts';
import {
  type Context,
  command,
  commandFailure,
  type Environment,
  EXIT,
  type Failure,
  type Main,
  type Result,
  UsageError,
} from '../command.ts';
import type { Chain } from './chain.ts';

/** The result of a command. */
export interface Outcome {
  readonly status: 'done' | 'unchanged' | 'dry-run' | 'unsigned';
  /** One line for people. */
  readonly title: string;
  /** The properties of the JSON, and the lines of the printed result. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The printed result, if it is not made of title and fields. */
  readonly text?: string;
  /** Whether the command found a problem: exit code 1. */
  readonly alarm?: boolean;
}

export interface Input {
  /** The positional arguments, by name; an optional one may be missing. */
  readonly args: Readonly<Record<string, string>>;
  /** The command's own options; one that was not given is missing. */
  readonly options: Readonly<Record<string, string>>;
  readonly env: Environment;
}

export interface SuiCommand {
  readonly name: string;
  readonly purpose: string;
  /** Names of the positional arguments, in order. */
  readonly positionals: readonly string[];
  /** How many of them may be omitted, from the end. Default: 0. */
  readonly optional?: number;
  /** The command's own options: their value, and their purpose. */
  readonly options: Readonly<Record<string, readonly [value: string, help: string]>>;
  /** The steps of the command, from its arguments alone: the part of a dry run that needs no network. */
  plan(input: Input): readonly string[] | Promise<readonly string[]>;
  run(input: Input, chain: Chain): Promise<Outcome>;
}

/** The option for another PCR file. */
export const PCRS_OPTION = { pcrs: ['<file>', 'the registers of the image (out/nitro.pcrs)'] } as const;
/** The option for enclaves that are not AWS's. */
export const ROOT_OPTION = {
  root: ['<file>', "trust the certificates of this PEM file in place of AWS's root (development)"],
} as const;

/** The file of `--pcrs`, or the one that the build writes. */
export function pcrsPath(options: Readonly<Record<string, string>>): string {
  return options['pcrs'] ?? 'out/nitro.pcrs';
}

const COMMON = {
  network: ['<name>', 'mainnet, testnet, devnet or localnet'],
  'rpc-url': ['<url>', 'a gRPC-web node in place of the one of --network'],
  address: ['<address>', "the sender; its key is read from the Sui CLI's keystore"],
  keystore: ['<file>', "the keystore, if it is not the Sui CLI's own"],
  'gas-budget': ['<mist>', 'the most gas to spend (default: what the node proposes, up to 1 SUI)'],
} as const;

const FLAGS = {
  unsigned: 'print the transaction in base64, for a wallet or a multisig to sign',
  'dry-run': 'say what would be done, have the node simulate it, and send nothing',
  json: "print JSON (after npm run --silent, to keep npm's own lines out of it)",
  help: 'print this',
} as const;

/** The output of `--help`. */
export function helpOf({ name, purpose, positionals, optional = 0, options }: SuiCommand): string {
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
    'With --dry-run: 0 no obstacle found: in the simulation by the node, or without one in the arguments; 1 it would',
    'fail; 2 the node that is named could not be asked.',
  ].join('\n');
}

/** The `main` of a command that talks to Sui. */
export function suiCommand(spec: SuiCommand): Main {
  const { positionals: names, optional = 0 } = spec;
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const usage = helpOf(spec);
  return command({
    usage,
    positionals: names,
    optional,
    options: {
      ...Object.fromEntries(Object.keys({ ...spec.options, ...COMMON }).map((name) => [name, text])),
      'dry-run': flag,
      unsigned: flag,
    },
    async run({ values, positionals }, context) {
      const given = values as Readonly<Record<string, string | boolean | undefined>>;
      if (given['dry-run'] && given['unsigned']) {
        throw new UsageError('give either --dry-run or --unsigned', usage);
      }
      const input = {
        args: Object.fromEntries(positionals.map((value, index) => [names[index] ?? '', value])),
        options: ownOptions(spec, given),
        env: context.env,
      };
      return await execute(spec, input, given, context);
    },
    report,
  });
}

/** A mistake in the arguments of a command, followed by its help. */
export function usageError(spec: SuiCommand, message: string): UsageError {
  return new UsageError(message, helpOf(spec));
}

async function execute(
  spec: SuiCommand,
  input: Input,
  values: Readonly<Record<string, string | boolean | undefined>>,
  { env, io, asJson }: Context,
): Promise<Result> {
  const plan = values['dry-run'] ? await spec.plan(input) : null;
  const { Chain } = await import('./chain.ts');
  const chain = new Chain(values, env);
  try {
    const outcome = await spec.run(input, chain);
    if (!asJson) for (const note of chain.notes) io.error(note);
    return { ...resultOf(outcome, chain.notes, plan), exit: outcome.alarm ? EXIT.failed : EXIT.done };
  } catch (error) {
    if (plan === null || !(error instanceof EnclaveError)) throw error;
    const { code, message } = error;
    const unchecked = UNCHECKED.includes(code);
    const fields = unchecked ? { notChecked: message } : { code, error: message };
    const title = unchecked ? 'Not checked on the chain.' : 'It would fail.';
    if (!asJson) for (const note of chain.notes) io.error(note);
    // Without a node, only the plan was asked for.
    const exit = unchecked && !chain.isNamed ? EXIT.done : exitOf(code);
    return { ...resultOf({ status: 'dry-run', title, fields }, chain.notes, plan), exit };
  }
}

/** Codes of errors without which a dry run continues as far as it can. */
const UNCHECKED: readonly string[] = ['SUI_NODE_UNREACHABLE', 'NO_NETWORK', 'NO_SENDER'];

/** Codes of errors that end a command before it has tried anything. */
const NOT_TRIED: readonly string[] = [
  ...UNCHECKED,
  'USAGE',
  'UNREADABLE_FILE',
  'SIGNER',
  'CONFIG',
  'SUI_VALUE',
  'POLICY_INVALID',
  'CLIENT_OPTION',
  'CLIENT_UNREACHABLE',
];

function exitOf(code: string): number {
  return NOT_TRIED.includes(code) ? EXIT.notTried : EXIT.failed;
}

function report(error: unknown): Failure | undefined {
  const failure = commandFailure(error);
  if (failure === undefined) return undefined;
  const { code, message } = error as EnclaveError;
  return { ...failure, exit: exitOf(code), text: `FAILED (${code}): ${message}` };
}

function ownOptions({ options }: SuiCommand, values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.keys(options).flatMap((name) => (typeof values[name] === 'string' ? [[name, values[name]]] : [])),
  );
}

function resultOf(
  { status, title, fields, text }: Outcome,
  notes: readonly string[],
  plan: readonly string[] | null,
): Result {
  const head = { status, ...(plan && { plan }), ...(notes.length > 0 && { notes }) };
  const lines = [title, ...linesOf(fields)];
  if (plan) {
    lines.unshift('It would:', ...plan.map((step) => `  - ${step}`), '');
    lines.push('', 'Nothing was signed or sent.');
  }
  return { json: { ...head, title, ...fields }, text: text ?? lines.join('\n') };
}

/** Properties as lines of name and value, lists and objects below their name. */
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
