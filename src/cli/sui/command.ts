/** What the commands that talk to Sui share: ids from the deployment file, dry runs, and output. */
import { AttestationError } from 'sui-enclave/attestation';
import { type ClientCode, ClientError } from 'sui-enclave/client/errors';
import { EnclaveError, isConfigError, isEnclaveError } from 'sui-enclave/errors';
import { type SuiCode, SuiError } from 'sui-enclave/sui/errors';
import {
  type Context,
  command,
  type Environment,
  EXIT,
  type Io,
  type Main,
  type Result,
  UsageError,
} from '../command.ts';
import {
  type ArgumentValues,
  formOf,
  type Given,
  inOrder,
  type Options,
  type OptionValues,
  type Texts,
  wordsOf,
} from '../command_line.ts';
import { Chain } from './chain.ts';
import { Deployments } from './deployments.ts';
import { checkWitness, isIdName, type SuiArgument } from './ids.ts';
import { nodeOf } from './network.ts';
import { COMMON, type CommonOptions, READING } from './options.ts';
import { type Outcome, resultOf } from './outcome.ts';
import { readSigner, senderOf } from './signer.ts';

type SuiArguments = Readonly<Record<string, SuiArgument>>;

type SuiArgumentValues<A extends SuiArguments> = {
  readonly [Name in keyof A]:
    | ArgumentValues<A>[Name]
    | (A[Name] extends { readonly fromFile: 'omitted'; readonly repeated?: false } ? undefined : never);
};

export interface Input<A extends SuiArguments = SuiArguments, O extends Options = Options> {
  readonly args: SuiArgumentValues<A>;
  readonly options: OptionValues<O>;
  /** Whether the ids among the arguments come from the network's deployment file. */
  readonly isFilled: boolean;
  /** The deployment file of `--network`; undefined without that option. */
  readonly deployments: Deployments | undefined;
  /** Whether nothing will be sent, because of --dry-run or --unsigned. */
  readonly isTrial: boolean;
  readonly env: Environment;
  /** As `Io.ask`. */
  readonly ask: Io['ask'];
}

export interface SuiCommand<A extends SuiArguments, O extends Options> {
  readonly name: string;
  readonly purpose: string;
  /** In order. */
  readonly arguments: A;
  /** Besides those of `options.ts` that all commands have. */
  readonly options: O;
  /** Whether the command signs nothing. */
  readonly isReader?: boolean;
  /**
   * The steps of the command, from its arguments alone: the part of a dry run that needs no network. Called before every
   * run, to find mistakes in the arguments.
   */
  plan(input: Input<A, O>): readonly string[] | Promise<readonly string[]>;
  run(input: Input<A, O>, chain: Chain): Promise<Outcome>;
}

const FROM_FILE =
  'Ids that the command line leaves out come from deployments/<network>.json, which the commands write.\n';
const SIGNER =
  'The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore.\n';
const NOTES = `exit codes: 0 done, or nothing to do; 1 refused or failed; 2 not tried (invalid argument or file, or no answer)
With --dry-run: 0 the node's simulation succeeded, or no node was named and the arguments are valid; 1 the transaction
would fail; 2 an argument is invalid, or the named node did not answer.`;

/** A command, whatever its arguments are. */
type AnyCommand = SuiCommand<SuiArguments, Options>;

/** The `main` of a command that talks to Sui. */
export function suiCommand<const A extends SuiArguments, const O extends Options>(
  spec: SuiCommand<A, O>,
): Main {
  return mainOf(spec as unknown as AnyCommand);
}

function mainOf(spec: AnyCommand): Main {
  const { name, purpose, arguments: args } = spec;
  const short = shortOf(args);
  return command({
    name,
    purpose,
    arguments: args,
    options: { ...spec.options, ...(spec.isReader ? READING : COMMON) },
    forms: short === undefined ? [formOf(args)] : [formOf(args), `${formOf(short)}, with --network`],
    notes: [short === undefined ? [] : FROM_FILE, spec.isReader ? [] : SIGNER, NOTES].flat().join('\n'),
    assign: (given, options, env) => textsOf(args, given, deploymentsOf(options as CommonOptions, env)),
    async run(given, context) {
      const common = given.options as CommonOptions;
      if (common['dry-run'] && common.unsigned) throw new UsageError('give either --dry-run or --unsigned');
      const input = inputOf(given, isShort(args, given.positionals), common, context);
      checkWitness(given.args);
      return await execute(spec, input, common, context);
    },
    exitOf,
  });
}

function inputOf(
  { args, options }: Given<SuiArguments, Options>,
  isFilled: boolean,
  common: CommonOptions,
  { env, io }: Context,
): Input {
  const isTrial = common['dry-run'] === true || common.unsigned === true;
  return { args, options, isFilled, deployments: deploymentsOf(common, env), isTrial, env, ask: io.ask };
}

function deploymentsOf({ network, app }: CommonOptions, env: Environment): Deployments | undefined {
  return network === undefined ? undefined : new Deployments(network, env, app);
}

/** The arguments to give where the deployment file stands in for the others; undefined for a command that reads none. */
function shortOf(args: SuiArguments): SuiArguments | undefined {
  const all = Object.entries(args);
  const short = all.filter(([, { fromFile, repeated }]) => fromFile === undefined || repeated);
  return short.length === all.length ? undefined : Object.fromEntries(short);
}

/** Whether the arguments are those of the short form: fewer, or URLs alone. */
function isShort(args: SuiArguments, given: readonly string[]): boolean {
  const all = Object.values(args);
  if (shortOf(args) === undefined) return false;
  const takesUrls = all.some(({ repeated }) => repeated);
  return (
    given.length < all.filter(({ optional }) => !optional).length ||
    (takesUrls && given[0]?.includes('://') === true)
  );
}

/** @throws UsageError; SuiCommandError: DEPLOYMENT */
function textsOf(args: SuiArguments, given: readonly string[], deployments: Deployments | undefined): Texts {
  const short = shortOf(args);
  if (short === undefined || !isShort(args, given)) return inOrder(args, given);
  const shortNames = Object.keys(short);
  const others = Object.keys(args).filter((name) => !shortNames.includes(name));
  const takesMore = Object.values(short).some(({ repeated }) => repeated);
  if (given.length > shortNames.length && !takesMore) {
    const alone = shortNames.length === 0 ? 'none of them' : `${wordsOf(short)} alone`;
    throw new UsageError(
      `${given.length} of the arguments ${wordsOf(args)} are given: give all, or ${alone}`,
    );
  }
  if (deployments === undefined) {
    const missing = Object.keys(args).filter(
      (name) => !args[name]?.optional && !shortNames.slice(0, given.length).includes(name),
    );
    throw new UsageError(
      `missing: ${wordsOf(args, missing)}. Give all arguments, or --network with a deployments/<network>.json that has these`,
    );
  }
  const texts = inOrder(short, given);
  const ids = others.filter((name) => args[name]?.fromFile === 'id').filter(isIdName);
  return { ...deployments.fill(ids), ...texts };
}

/** Without asking the node for anything. */
async function checkNodeAndSigner(
  { isReader }: AnyCommand,
  options: CommonOptions,
  env: Environment,
): Promise<void> {
  const { network, 'rpc-url': rpcUrl, address, keystore, 'dry-run': isDry } = options;
  if (network !== undefined || rpcUrl !== undefined || !isDry) nodeOf(network, rpcUrl);
  if (isReader) return;
  if (!isDry || env['SUI_PRIVATE_KEY'] || address !== undefined) senderOf(env, { address });
  if (!isDry && !options.unsigned) await readSigner(env, { address, keystore });
}

async function execute(
  spec: AnyCommand,
  input: Input,
  options: CommonOptions,
  { env, io, asJson }: Context,
): Promise<Result> {
  // Also finds the mistakes that only the command knows.
  const steps = await spec.plan(input);
  await checkNodeAndSigner(spec, options, env);
  const plan = options['dry-run'] ? steps : null;
  const chain = new Chain(options, env);
  try {
    if (input.isFilled) await input.deployments?.checkChain(chain);
    else chain.notes.push(...(input.deployments?.contradictions(input.args) ?? []));
    const outcome = await spec.run(input, chain);
    if (!asJson) for (const note of chain.notes) io.error(note);
    return { ...resultOf(outcome, chain.notes, plan), exit: outcome.alarm ? EXIT.failed : EXIT.done };
  } catch (thrown) {
    const error = withNode(thrown, chain);
    if (plan === null || !isEnclaveError(error)) throw error;
    const { code, message } = error;
    const unchecked = UNCHECKED.includes(code);
    const fields = unchecked ? { notChecked: message } : { code, error: message };
    const title = unchecked ? 'Not checked on the chain.' : 'It would fail.';
    if (!asJson) for (const note of chain.notes) io.error(note);
    // Without a node, only the plan was asked for.
    const exit = unchecked && !chain.isNamed ? EXIT.done : exitOf(error);
    return { ...resultOf({ status: 'dry-run', title, fields }, chain.notes, plan), exit };
  }
}

/** An error of the node, as the reports have it: with the node's address, and why it did not answer. */
class NodeError extends EnclaveError {
  readonly code: string;
  readonly exit: number;

  constructor(error: SuiError, { description, failure }: Chain) {
    const why = failure === null ? '' : `, which failed with ${failure}`;
    super(`${error.message}. The node: ${description}${why}`, { cause: error });
    this.code = error.code;
    this.exit = exitOf(error);
  }
}

/** The codes of errors that may come from a wrong address, or need it. */
const OF_NODE = /^SUI_(NODE_|UNKNOWN_OUTCOME)/;

function withNode(error: unknown, chain: Chain): unknown {
  if (!(error instanceof SuiError) || !OF_NODE.test(error.code)) return error;
  return new NodeError(error, chain);
}

/** Codes of errors without which a dry run continues as far as it can. */
const UNCHECKED: readonly string[] = ['SUI_NODE_UNREACHABLE', 'NO_NETWORK', 'NO_SENDER'];

/** Errors of the library that end a command before it has tried anything: they have no exit code of their own. */
const NOT_TRIED = {
  sui: ['SUI_NODE_UNREACHABLE', 'SUI_VALUE'] as readonly SuiCode[],
  client: ['CLIENT_OPTION', 'CLIENT_UNREACHABLE'] as readonly ClientCode[],
};

function exitOf(error: EnclaveError): number {
  if ('exit' in error && typeof error.exit === 'number') return error.exit;
  const isTried = !(
    isConfigError(error) ||
    (error instanceof SuiError && NOT_TRIED.sui.includes(error.code)) ||
    (error instanceof ClientError && NOT_TRIED.client.includes(error.code)) ||
    (error instanceof AttestationError && error.code === 'POLICY_INVALID')
  );
  return isTried ? EXIT.failed : EXIT.notTried;
}
