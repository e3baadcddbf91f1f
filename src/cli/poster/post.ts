/** `sui-enclave post`: in each period, writes the newest signed answer of its enclaves on chain. */
import {
  command,
  type Environment,
  EXIT,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { GasBudget, NO_RECORD } from '../rounds/budget.ts';
import { openRecord } from '../rounds/record.ts';
import { watch } from '../rounds/watch.ts';
import { Chain } from '../sui/chain.ts';
import { readRoots } from '../sui/contract.ts';
import { Deployments } from '../sui/deployments.ts';
import { chooseNode } from '../sui/network.ts';
import { COMMON, type CommonOptions } from '../sui/options.ts';
import { type Request, readRequest } from '../sui/signed_call.ts';
import { readSigner } from '../sui/signer.ts';
import { path } from '../values.ts';
import { formatAlert, isAlarm } from './alerts.ts';
import { type PosterFile, PosterFileError, parsePosterFile } from './file.ts';
import { Metrics } from './metrics.ts';
import { PosterNode } from './node.ts';
import { formatDone, Poster, type Report } from './round.ts';
import { Transactions } from './transactions.ts';

export const main = command({
  name: 'post',
  purpose: `Asks the enclaves of a file in each period until SIGTERM, verifies that registered keys signed their answers, and
calls a Move function of any contract with the newest answer, as submit does, if the contract would accept it. It holds
neither an EnclaveCap nor secrets: anyone may submit a signed answer.`,
  example: 'poster.yaml --dry-run',
  arguments: { file: { schema: path } },
  options: {
    once: { help: 'run one round, and print what it found and did' },
    address: COMMON.address,
    keystore: COMMON.keystore,
    record: {
      value: '<file>',
      help: 'the gas budgets signed in the last 24 hours (default: the path of the file with .record.json)',
      schema: path,
    },
    transactions: {
      value: '<file>',
      help: 'the signed transactions in flight (default: the path of the file with .transactions.json)',
      schema: path,
    },
    'dry-run': { help: 'run one round, have the node simulate its transaction, and sign nothing' },
  },
  notes: `The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore. Nothing else may use
its coins.

exit codes: 0 ended, or one round without an alert; 1 one round with an alert; 2 not tried (arguments, file, signer)`,
  async run({ args, options }, context) {
    const file = parsePosterFile((await readFileArgument(args.file)).toString(), args.file);
    const {
      once,
      record = `${args.file}.record.json`,
      transactions = `${args.file}.transactions.json`,
      ...signing
    } = options;
    const isDryRun = options['dry-run'] === true;
    const files = isDryRun ? undefined : { record, transactions };
    const started = await createPoster(file, { path: args.file, signing, files, env: context.env });
    if (file.root !== undefined) {
      context.io.log(`Trusts the certificates of ${file.root} in place of AWS's root.`);
    }
    if (once || isDryRun) return await runOnce(started, isDryRun);
    const round = (signal: AbortSignal) => started.poster.round(signal);
    return await watch({ file, metrics: new Metrics(started.gas), round, formatDone, formatAlert }, context);
  },
});

/** Key, files and clocks with which a poster starts. */
export interface Start {
  /** The path of its file, for messages. */
  readonly path: string;
  readonly signing: Pick<CommonOptions, 'address' | 'keystore'>;
  /** Paths of its record and its transactions; undefined for a dry run. */
  readonly files: { readonly record: string; readonly transactions: string } | undefined;
  readonly env: Environment;
  /** Returns the time in milliseconds since 1970. Default: the machine's clock. */
  now?(): number;
  /** Returns a monotonic clock in milliseconds. Default: the machine's. */
  clock?(): number;
}

/**
 * Creates the poster of a file, and sends no request yet.
 *
 * @throws PosterFileError, SuiCommandError, UnreadableFileError, ClientError: CLIENT_SCHEMA
 */
export async function createPoster(
  file: PosterFile,
  { path, signing, files, env, now = Date.now, clock = () => performance.now() }: Start,
): Promise<{ readonly poster: Poster; readonly gas: GasBudget }> {
  const { network, gasAnHour, gasADay } = file;
  const signer = await readSigner(env, signing);
  const sender = signer.toSuiAddress();
  const deployments = network === undefined ? undefined : new Deployments(network, env, file.app);
  const request = readNames(file, path, deployments);
  const limits = { GAS_AN_HOUR: gasAnHour, GAS_A_DAY: gasADay };
  const record = files === undefined ? NO_RECORD : openRecord(files.record, PosterFileError);
  const gas = new GasBudget(limits, clock, record);
  const [first, ...further] = file.nodes;
  const nodes: PosterNode[] = [];
  for (const url of [first, ...further]) {
    const chain = new Chain({ network, ...(url !== undefined && { 'rpc-url': url }) }, env);
    nodes.push(
      new PosterNode({
        name: new URL(chooseNode(network, url).url).host,
        chain,
        request,
        deployments,
        naming: file,
        objects: file.objects,
        anyAnswer: file.anyAnswer,
        roots: await readRoots(chain, file.root),
        maxAgeMs: file.maxAgeMs,
        timeoutMs: Math.min(ENCLAVE_TIMEOUT_MS, file.intervalMs),
        now,
      }),
    );
  }
  const poster = new Poster({
    nodes: nodes as [PosterNode, ...PosterNode[]],
    urls: file.urls,
    target: request.target,
    sender,
    sign: async (transaction) => (await signer.signTransaction(transaction)).signature,
    transactions: new Transactions(files?.transactions, sender),
    gas,
    gasBudget: file.gasBudget,
    maxGasPrice: file.maxGasPrice,
    expectedAborts: file.expectedAborts,
    isDryRun: files === undefined,
    now,
  });
  return { poster, gas };
}

const ENCLAVE_TIMEOUT_MS = 10_000;

/** @throws PosterFileError; SuiCommandError: DEPLOYMENT; ClientError: CLIENT_SCHEMA */
function readNames(file: PosterFile, path: string, deployments: Deployments | undefined): Request {
  try {
    return readRequest(file, deployments);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // The message names options, which are properties of this file.
    throw new PosterFileError(`${path}: ${error.message.replaceAll('--', '')}`, { cause: error });
  }
}

type Started = Awaited<ReturnType<typeof createPoster>>;

async function runOnce({ poster }: Started, isDryRun: boolean): Promise<Result> {
  const report = await poster.round(new AbortController().signal);
  return {
    exit: report.alerts.some(isAlarm) ? EXIT.failed : EXIT.done,
    json: {
      status: isDryRun ? 'dry-run' : 'done',
      done: report.done,
      alerts: report.alerts.map((alert) => ({ ...alert, isWarning: !isAlarm(alert) })),
      values: report.values,
      inFlight: report.inFlight,
    },
    text: formatSummary(report).join('\n'),
  };
}

function formatSummary(report: Report): string[] {
  const lines = [...formatDone(report), ...report.alerts.map(formatAlert)];
  return lines.length === 0 ? ['Nothing to post.'] : lines;
}

if (import.meta.main) await runAsProcess(main);
