/** The help of the commands that talk to Sui, and the options that all of them have. */
import { UsageError } from '../command.ts';

/** The command line of a command, for its parsing and its help. */
export interface CommandLine {
  readonly name: string;
  readonly purpose: string;
  /** Names of the positional arguments, in order. */
  readonly positionals: readonly string[];
  /** How many of them may be omitted, from the end. Default: 0. */
  readonly optional?: number;
  /** Positional arguments that the network's deployment file stands in for where all of them are left out. */
  readonly fromFile?: readonly string[];
  /** The command's own options: their value, and their purpose. */
  readonly options: Readonly<Record<string, readonly [value: string, help: string]>>;
  /** Those that may be repeated. */
  readonly lists?: Readonly<Record<string, readonly [value: string, help: string]>>;
  /** The command's own flags, and their purpose. */
  readonly flags?: Readonly<Record<string, string>>;
}

export const COMMON = {
  network: ['<name>', 'mainnet, testnet, devnet or localnet'],
  app: ['<name>', 'the application in deployments/<network>.json, where it has several'],
  'rpc-url': ['<url>', 'a gRPC-web node in place of the one of --network'],
  address: ['<address>', "the sender; its key is read from the Sui CLI's keystore"],
  keystore: ['<file>', "the keystore, if it is not the Sui CLI's own"],
  'gas-budget': ['<mist>', 'the most gas to spend (default: what the node proposes, up to 1 SUI)'],
} as const;

export const FLAGS = {
  unsigned: 'print the transaction in base64, for a wallet or a multisig to sign',
  'dry-run': 'say what would be done, have the node simulate it, and send nothing',
  json: "print JSON (after npm run --silent, to keep npm's own lines out of it)",
  help: 'print this',
} as const;

/** The positional arguments that remain where the deployment file stands in for the others. */
export function shortOf({ positionals, fromFile = [] }: CommandLine): string[] {
  return positionals.filter((name) => !fromFile.includes(name));
}

/** How many positional arguments are needed, where the deployment file stands in for the others too. */
export function fewest(spec: CommandLine): number {
  const { positionals, optional = 0, fromFile = [] } = spec;
  const needed = positionals.slice(0, positionals.length - optional);
  return needed.filter((name) => !fromFile.includes(name)).length;
}

/** The output of `--help`. */
export function helpOf(spec: CommandLine): string {
  const { name, purpose, positionals, optional = 0, fromFile, options, lists, flags } = spec;
  const words = (names: readonly string[], needed: number) =>
    names.map((word, index) => (index < needed ? `<${word}>` : `[<${word}>]`)).join(' ');
  const line = (usage: string) => `npm run ${name} -- ${`${usage} [options]`.trim()}`;
  const rows = [
    ...Object.entries({ ...options, ...lists, ...COMMON }).map(([option, [value, help]]) => [
      `--${option} ${value}`,
      help,
    ]),
    ...Object.entries({ ...flags, ...FLAGS }).map(([flag, help]) => [`--${flag}`, help]),
  ] as [left: string, right: string][];
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [
    `usage: ${line(words(positionals, positionals.length - optional))}`,
    ...(fromFile ? [`       ${line(words(shortOf(spec), fewest(spec)))}, with --network`] : []),
    '',
    purpose,
    '',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`),
    '',
    ...(fromFile
      ? ['Without ids, they come from deployments/<network>.json, which the commands write.', '']
      : []),
    'The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore.',
    '',
    'exit codes: 0 done, or nothing to do; 1 refused or failed; 2 not tried (arguments, files, no answer)',
    'With --dry-run: 0 no obstacle found: in the simulation by the node, or without one in the arguments; 1 it would',
    'fail; 2 the node that is named could not be asked.',
  ].join('\n');
}

/** A mistake in the arguments of a command, followed by its help. */
export function usageError(spec: CommandLine, message: string): UsageError {
  return new UsageError(message, helpOf(spec));
}
