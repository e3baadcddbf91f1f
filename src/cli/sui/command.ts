/** The common part of commands that talk to Sui: ids from the deployment file, dry runs, and output. */
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
  type Arguments,
  type ArgumentValues,
  isId,
  type Options,
  type OptionValues,
} from '../command_line.ts';
import { PROGRAM } from '../places.ts';
import { objectId } from '../values.ts';
import { Chain } from './chain.ts';
import { Deployments } from './deployments.ts';
import { checkWitness, type IdName, type Ids, idOptions, idsIn, optionFor } from './ids.ts';
import { chooseNode } from './network.ts';
import { COMMON, type CommonOptions, READING } from './options.ts';
import { createResult, type Outcome } from './outcome.ts';
import { findSender, readSigner } from './signer.ts';

export interface Input<
  A extends Arguments = Arguments,
  O extends Options = Options,
  N extends IdName = IdName,
> {
  /** Ids from the options, or from the network's deployment file. */
  readonly ids: Pick<Ids, N>;
  readonly args: ArgumentValues<A>;
  readonly options: OptionValues<O>;
  /** Whether some of the ids come from the network's deployment file. */
  readonly isFilled: boolean;
  /** The deployment file of `--network`; undefined without that option. */
  readonly deployments: Deployments | undefined;
  /** Whether nothing will be sent, because of --dry-run or --unsigned. */
  readonly isTrial: boolean;
  readonly env: Environment;
  /** Asks the person at the terminal, as `Io.ask` does. */
  readonly ask: Io['ask'];
}

export interface SuiCommand<A extends Arguments, O extends Options, N extends IdName> {
  readonly name: string;
  readonly purpose: string;
  readonly example: string;
  /** Names of the ids that the command needs, each of which has an option. */
  readonly ids: readonly N[];
  /** Positional arguments in their order. */
  readonly arguments: A;
  /** Former arguments, as in `CommandLine`. */
  readonly formerly?: Arguments;
  /** The command's options, besides those of `options.ts` that all commands have. */
  readonly options: O;
  /** Whether the command signs nothing. */
  readonly isReader?: boolean;
  /** Finds mistakes in arguments and options that can be seen without a network. */
  check?(invocation: Input<A, O, N>): unknown;
  run(invocation: Input<A, O, N>, chain: Chain): Promise<Outcome>;
}

const FROM_FILE = 'The deployment file is deployments/<network>.json, which the commands write.\n';
const SIGNER =
  'The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore.\n';
const NOTES = `exit codes: 0 done, or nothing to do; 1 refused or failed; 2 not tried (invalid argument or file, or no answer)
With --dry-run: 0 the node's simulation succeeded, or no node was named and the arguments are valid; 1 the transaction
would fail; 2 an argument is invalid, or the named node did not answer.`;

/** A command with any arguments, options and ids. */
type AnyCommand = SuiCommand<Arguments, Options, IdName>;

/** Returns the `main` of a command that talks to Sui. */
export function suiCommand<
  const A extends Arguments,
  const O extends Options,
  const N extends IdName = never,
>(spec: SuiCommand<A, O, N>): Main {
  return createMain(spec as unknown as AnyCommand);
}

function createMain(spec: AnyCommand): Main {
  const { ids, isReader } = spec;
  return command({
    ...spec,
    options: { ...idOptions(ids), ...spec.options, ...(isReader ? READING : COMMON) },
    notes: [ids.length === 0 ? [] : FROM_FILE, isReader ? [] : SIGNER, NOTES].flat().join('\n'),
    checkPositionals: (positionals) => checkNoIds(spec, positionals),
    async run({ args, options }, context) {
      const common = options as CommonOptions;
      if (common['dry-run'] && common.unsigned) throw new UsageError('give either --dry-run or --unsigned');
      const { env, io } = context;
      const deployments = openDeployments(common, env);
      const optionIds = idsIn(ids, options);
      const missing = ids.filter((name) => optionIds[name] === undefined);
      const filled = { ...optionIds, ...readMissingIds(missing, deployments) } as Ids;
      checkWitness(filled);
      const isFilled = missing.length > 0;
      const isTrial = common['dry-run'] === true || common.unsigned === true;
      const invocation = { ids: filled, args, options, isFilled, deployments, isTrial, env, ask: io.ask };
      const notes = deployments?.contradictions(optionIds, isFilled) ?? [];
      return await execute(spec, invocation, notes, context);
    },
    chooseExit,
  });
}

/** Refuses ids as arguments, which older versions accepted. @throws UsageError */
function checkNoIds(spec: AnyCommand, positionals: readonly string[]): void {
  const options = Object.entries({ ...idOptions(spec.ids), ...spec.options });
  const names = options.filter(([, { schema }]) => schema === objectId).map(([name]) => `--${name}`);
  const subjects = Object.values(spec.arguments).filter(({ schema }) => schema === objectId);
  const [id, ...morePositionals] = positionals.filter(isId);
  if (
    names.length === 0 ||
    spec.formerly !== undefined ||
    id === undefined ||
    morePositionals.length < subjects.length
  )
    return;
  throw new UsageError(
    `unexpected argument: ${id}. Give ids by ${names.join(', ')}, or leave them out with --network`,
  );
}

/** @throws UsageError; SuiCommandError: DEPLOYMENT */
function readMissingIds(missing: readonly IdName[], deployments: Deployments | undefined): Partial<Ids> {
  if (missing.length === 0) return {};
  if (deployments !== undefined) return deployments.fill(missing);
  throw new UsageError(
    `missing: ${missing.map(optionFor).join(', ')}. Give all of them, or --network with a deployments/<network>.json that has them`,
  );
}

function openDeployments({ network, app }: CommonOptions, env: Environment): Deployments | undefined {
  return network === undefined ? undefined : new Deployments(network, env, app);
}

/** Checks the options for node and signer without a request to the node. */
async function checkNodeAndSigner(
  { isReader }: AnyCommand,
  options: CommonOptions,
  env: Environment,
): Promise<void> {
  const { network, 'rpc-url': rpcUrl, address, keystore, 'dry-run': isDryRun } = options;
  if (network !== undefined || rpcUrl !== undefined || !isDryRun) chooseNode(network, rpcUrl);
  if (isReader) return;
  if (!isDryRun || env['SUI_PRIVATE_KEY'] || address !== undefined) findSender(env, { address });
  if (!isDryRun && !options.unsigned) await readSigner(env, { address, keystore });
}

async function execute(
  spec: AnyCommand,
  invocation: Input,
  notes: readonly string[],
  { env, io, asJson }: Context,
): Promise<Result> {
  const options = invocation.options as CommonOptions;
  await spec.check?.(invocation);
  await checkNodeAndSigner(spec, options, env);
  const isDryRun = options['dry-run'] === true;
  const chain = new Chain(options, env);
  try {
    if (invocation.isFilled) await invocation.deployments?.checkChain(chain);
    chain.notes.push(...notes);
    const outcome = await spec.run(invocation, chain);
    if (!asJson) printNotes(chain, io);
    const plan = isDryRun ? chain.plan : null;
    return { ...createResult(outcome, chain.notes, plan), exit: outcome.alarm ? EXIT.failed : EXIT.done };
  } catch (thrown) {
    const error = addNode(thrown, chain);
    if (!isDryRun || !isEnclaveError(error)) throw error;
    if (!asJson) printNotes(chain, io);
    return createDryRunFailure(error, chain);
  }
}

function printNotes({ notes }: Chain, io: Io): void {
  for (const note of notes) io.error(note);
}

/** Returns the result of a dry run that ended with an error. */
function createDryRunFailure(error: EnclaveError, chain: Chain): Result {
  const { code, message } = error;
  const isUnchecked = UNCHECKED.includes(code);
  const fields = isUnchecked ? { notChecked: message } : { code, error: message };
  const title = isUnchecked ? 'Not checked on the chain.' : 'It would fail.';
  // Without a node, a dry run checks the arguments only.
  const exit = isUnchecked && !chain.isNamed ? EXIT.done : chooseExit(error);
  return { ...createResult({ status: 'dry-run', title, fields }, chain.notes, chain.plan), exit };
}

/** An error of the node for the reports, with the node's address and the reason why it did not answer. */
class NodeError extends EnclaveError {
  readonly code: string;
  readonly exit: number;

  constructor(error: SuiError, { description, failure, network }: Chain) {
    const cause = failure === null ? '' : `, which failed with ${failure}`;
    const isSilent = network === 'localnet' && error.code === 'SUI_NODE_UNREACHABLE';
    const remedy = isSilent ? `. No node answers there: ${PROGRAM} play or dev-sui starts one` : '';
    super(`${error.message}. The node: ${description}${cause}${remedy}`, { cause: error });
    this.code = error.code;
    this.exit = chooseExit(error);
  }
}

/** Matches the codes of errors that a node's wrong address may cause, or whose report needs the address. */
const NODE_CODES = /^SUI_(NODE_|UNKNOWN_OUTCOME)/;

function addNode(error: unknown, chain: Chain): unknown {
  if (!(error instanceof SuiError) || !NODE_CODES.test(error.code)) return error;
  return new NodeError(error, chain);
}

/** Codes of errors after which a dry run reports that it checked nothing on the chain. */
const UNCHECKED: readonly string[] = ['SUI_NODE_UNREACHABLE', 'NO_NETWORK', 'NO_SENDER'];

/**
 * Codes of the library's errors that end a command before it has tried anything. These errors have no exit
 * code.
 */
const NOT_TRIED = {
  sui: ['SUI_NODE_UNREACHABLE', 'SUI_VALUE'] as readonly SuiCode[],
  client: ['CLIENT_OPTION', 'CLIENT_UNREACHABLE'] as readonly ClientCode[],
};

function chooseExit(error: EnclaveError): number {
  if ('exit' in error && typeof error.exit === 'number') return error.exit;
  const isTried = !(
    isConfigError(error) ||
    (error instanceof SuiError && NOT_TRIED.sui.includes(error.code)) ||
    (error instanceof ClientError && NOT_TRIED.client.includes(error.code)) ||
    (error instanceof AttestationError && error.code === 'POLICY_INVALID')
  );
  return isTried ? EXIT.failed : EXIT.notTried;
}
