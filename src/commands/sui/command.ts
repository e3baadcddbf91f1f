/** The framework of the commands that talk to Sui: positional arguments by name, common options, dry runs and output. */
import { fileURLToPath } from 'node:url';
import { EnclaveError } from 'sui-enclave/errors';
import {
  type Context,
  command,
  commandFailure,
  type Environment,
  EXIT,
  type Failure,
  type Io,
  type Main,
  type Result,
  UsageError,
} from '../command.ts';
import type { Given } from './arguments.ts';
import type { Chain } from './chain.ts';
import type { Deployments } from './deployments.ts';
import { COMMON, type CommandLine, FLAGS, fewest, helpOf, shortOf, usageError } from './help.ts';
import { type Outcome, resultOf } from './outcome.ts';

export { usageError } from './help.ts';

export interface Input extends Given {
  /** Whether the ids among the arguments come from the network's deployment file. */
  readonly isFilled: boolean;
  /** The deployment file of `--network`; undefined without that option. */
  readonly deployments: Deployments | undefined;
  /** The command's own flags that were given. */
  readonly flags: ReadonlySet<string>;
  /** Whether nothing will be sent, because of --dry-run or --unsigned. */
  readonly isTrial: boolean;
  readonly env: Environment;
  /** As `Io.ask`. */
  readonly ask: Io['ask'];
}

export interface SuiCommand extends CommandLine {
  /** Whether the command signs nothing. */
  readonly isReader?: boolean;
  /**
   * The steps of the command, from its arguments alone: the part of a dry run that needs no network. Called before every
   * run, to find mistakes in the arguments.
   */
  plan(input: Input): readonly string[] | Promise<readonly string[]>;
  run(input: Input, chain: Chain): Promise<Outcome>;
}

/** The option for another PCR file. */
export const PCRS_OPTION = { pcrs: ['<file>', 'the registers of the image (out/nitro.pcrs)'] } as const;
/** The flag of commands that write registers. */
export const EXPERIMENTAL_FLAG = {
  experimental: 'allow an image that is not of a tagged release (CHANNEL=stable), on a real network too',
} as const;
/** The option for another file than the package's own `Published.toml`. */
export const PUBLISHED_OPTION = {
  published: ['<file>', 'where it is noted what is published (move/<package>/Published.toml)'],
} as const;
/** The option for enclaves that are not AWS's. */
export const ROOT_OPTION = {
  root: ['<file>', "trust the certificates of this PEM file in place of AWS's root (development)"],
} as const;

/** The file of `--pcrs`, or the one that the build writes. */
export function pcrsPath(options: Readonly<Record<string, string>>): string {
  return options['pcrs'] ?? 'out/nitro.pcrs';
}

/** The file of `--published`, or the package's own. */
export function publishedPath(name: string, options: Readonly<Record<string, string>>): string {
  return (
    options['published'] ?? fileURLToPath(new URL(`../../../move/${name}/Published.toml`, import.meta.url))
  );
}

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** The `main` of a command that talks to Sui. */
export function suiCommand(spec: SuiCommand): Main {
  const { positionals: names } = spec;
  const text = { type: 'string' } as const;
  const list = { type: 'string', multiple: true } as const;
  const flag = { type: 'boolean' } as const;
  const usage = helpOf(spec);
  const named = (of: object | undefined, kind: typeof text | typeof list | typeof flag) =>
    Object.fromEntries(Object.keys(of ?? {}).map((name) => [name, kind]));
  return command({
    usage,
    positionals: names,
    optional: names.length - fewest(spec),
    options: {
      ...named({ ...spec.options, ...COMMON }, text),
      ...named(spec.lists, list),
      ...named({ ...spec.flags, ...FLAGS }, flag),
    },
    async run({ values, positionals }, context) {
      const given = values as Values;
      if (given['dry-run'] && given['unsigned']) {
        throw new UsageError('give either --dry-run or --unsigned', usage);
      }
      return await execute(spec, await inputOf(spec, given, positionals, context), given, context);
    },
    report,
  });
}

async function inputOf(
  spec: SuiCommand,
  values: Values,
  positionals: readonly string[],
  { env, io }: Context,
): Promise<Input> {
  const { args, isFilled } = argumentsOf(spec, positionals);
  const { network, app } = values;
  let deployments: Deployments | undefined;
  if (typeof network === 'string') {
    const { nodeOf } = await import('./network.ts');
    // Also a check that it is no path.
    nodeOf(network, undefined);
    const { Deployments } = await import('./deployments.ts');
    deployments = new Deployments(network, env, typeof app === 'string' ? app : undefined);
  }
  if (isFilled && deployments === undefined) {
    const names = spec.fromFile?.map((name) => `<${name}>`).join(' ');
    const message = `missing: ${names}: give them, or a --network whose deployments/<network>.json has them`;
    throw usageError(spec, message);
  }
  return {
    args: isFilled ? { ...deployments?.fill(spec.fromFile ?? []), ...args } : args,
    isFilled,
    options: ownOptions(spec, values),
    lists: Object.fromEntries(
      Object.keys(spec.lists ?? {}).map((name) => [name, (values[name] ?? []) as readonly string[]]),
    ),
    deployments,
    flags: new Set(Object.keys(spec.flags ?? {}).filter((name) => values[name] === true)),
    isTrial: values['dry-run'] === true || values['unsigned'] === true,
    env,
    ask: io.ask,
  };
}

/** The number of arguments decides whether they are all, or those that the deployment file doesn't have. */
function argumentsOf(spec: SuiCommand, given: readonly string[]) {
  const { positionals, optional = 0, fromFile } = spec;
  const byName = (names: readonly string[]) =>
    Object.fromEntries(given.map((value, index) => [names[index] ?? '', value]));
  if (fromFile === undefined || given.length >= positionals.length - optional) {
    return { args: byName(positionals), isFilled: false };
  }
  const short = shortOf(spec);
  if (given.length > short.length) {
    const words = (names: readonly string[]) => names.map((name) => `<${name}>`).join(' ');
    const alone = short.length === 0 ? 'none of them' : `${words(short)} alone`;
    throw usageError(
      spec,
      `${given.length} of the arguments ${words(positionals)} are given: give all, or ${alone}`,
    );
  }
  return { args: byName(short), isFilled: true };
}

/** Without asking the node for anything. */
async function checkNodeAndSigner(spec: SuiCommand, values: Values, env: Environment): Promise<void> {
  const text = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined);
  const [network, rpcUrl, address, keystore] = ['network', 'rpc-url', 'address', 'keystore'].map(text);
  const isDry = values['dry-run'] === true;
  const isNamed = network !== undefined || rpcUrl !== undefined;
  if (isNamed || !isDry) (await import('./network.ts')).nodeOf(network, rpcUrl);
  if (spec.isReader) return;
  const { checkBudget, readSigner, senderOf } = await import('./signer.ts');
  checkBudget(text('gas-budget'));
  if (!isDry || env['SUI_PRIVATE_KEY'] || address !== undefined) senderOf(env, { address });
  if (!isDry && !values['unsigned']) await readSigner(env, { address, keystore });
}

async function execute(
  spec: SuiCommand,
  input: Input,
  values: Values,
  { env, io, asJson }: Context,
): Promise<Result> {
  const { checkArguments } = await import('./arguments.ts');
  checkArguments(spec, input);
  // Also finds the mistakes that only the command knows.
  const steps = await spec.plan(input);
  await checkNodeAndSigner(spec, values, env);
  const plan = values['dry-run'] ? steps : null;
  const { Chain } = await import('./chain.ts');
  const chain = new Chain(values, env);
  try {
    if (input.isFilled) await input.deployments?.checkChain(chain);
    else chain.notes.push(...(input.deployments?.contradictions(input.args) ?? []));
    const outcome = await spec.run(input, chain);
    if (!asJson) for (const note of chain.notes) io.error(note);
    return { ...resultOf(outcome, chain.notes, plan), exit: outcome.alarm ? EXIT.failed : EXIT.done };
  } catch (thrown) {
    const error = withNode(thrown, chain);
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

/** An error of the node, as the reports have it: with the node's address, and why it did not answer. */
class NodeError extends EnclaveError {
  readonly code: string;

  constructor({ code, message }: EnclaveError, { description, failure }: Chain, cause: unknown) {
    const why = failure === null ? '' : `, which failed with ${failure}`;
    super(`${message}. The node: ${description}${why}`, { cause });
    this.code = code;
  }
}

/** The codes of errors that may come from a wrong address, or need it. */
const OF_NODE = /^SUI_(NODE_|UNKNOWN_OUTCOME)/;

function withNode(error: unknown, chain: Chain): unknown {
  if (!(error instanceof EnclaveError) || !OF_NODE.test(error.code)) return error;
  return new NodeError(error, chain, error);
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
  'DEPLOYMENT',
  'DEVELOPMENT_TRUST',
  'EXPERIMENTAL_IMAGE',
  'NOT_CONFIRMED',
  'FRAMEWORK_UNREACHABLE',
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
