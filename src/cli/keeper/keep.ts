/** `sui-enclave keep`: keeps enclaves registered, and destroys stale enclaves. */
import { type Context, command, EXIT, type Result, readFileArgument, runAsProcess } from '../command.ts';
import { GasBudget, NO_RECORD } from '../rounds/budget.ts';
import { openRecord } from '../rounds/record.ts';
import { watch } from '../rounds/watch.ts';
import { COMMON } from '../sui/options.ts';
import { readSigner } from '../sui/signer.ts';
import { path } from '../values.ts';
import { formatLine, isAlarm } from './alerts.ts';
import { type KeeperFile, KeeperFileError, parseKeeperFile } from './file.ts';
import { Metrics } from './metrics.ts';
import { formatLines, Keeper, type Report } from './round.ts';
import { createWorld, type Signing } from './world.ts';

export const main = command({
  name: 'keep',
  purpose: `Watches the enclaves of a file until SIGTERM: attests each with a nonce of its own, registers new keys with a
RegistrarCap, and destroys enclaves that are stale or of a retired config. It holds neither an EnclaveCap nor secrets,
and never destroys an enclave that contracts accept. If the config's registers differ from the file's, it does nothing.`,
  example: 'keeper.yaml --dry-run',
  arguments: { file: { schema: path } },
  options: {
    once: { help: 'run one round, and print what it found and did' },
    address: COMMON.address,
    keystore: COMMON.keystore,
    record: {
      value: '<file>',
      help: 'the record of what was signed in the last 24 hours (default: the path of the file, followed by .record.json)',
      schema: path,
    },
    'dry-run': { help: 'run one round, have the node simulate its transactions, and send nothing' },
  },
  notes: `The signer is SUI_PRIVATE_KEY (suiprivkey…) in the environment, or the key of --address in the keystore. It must own the
RegistrarCap, and nothing else may use its coins.

exit codes: 0 ended, or one round without an alert; 1 one round with an alert; 2 not tried (arguments, file, signer)`,
  async run({ args, options }, context) {
    const file = parseKeeperFile((await readFileArgument(args.file)).toString(), args.file);
    const { once, record, ...signing } = options;
    await readSigner(context.env, signing);
    const start: Start = { file, path: args.file, record: record ?? `${args.file}.record.json`, signing };
    if (once || options['dry-run']) return await runOnce(start, context);
    const { keeper, gas } = await createKeeper(start, context);
    const round = (signal: AbortSignal) => keeper.round(signal);
    const format = { formatDone: formatLines, formatAlert: formatLine };
    return await watch({ file, metrics: new Metrics(gas), round, ...format }, context);
  },
});

/** The settings with which a keeper starts. */
interface Start {
  readonly file: KeeperFile;
  /** Path of the file. */
  readonly path: string;
  /** The path of the record. */
  readonly record: string;
  readonly signing: Signing;
}

const clock = () => performance.now();

async function createKeeper({ file, path, record, signing }: Start, { env, io }: Context) {
  const world = await createWorld(file, path, signing, env, (budget, kind) =>
    // Contracts refuse a stale enclave whether it is destroyed or not, but callers wait for a registration.
    gas.spend(budget, kind === 'register'),
  );
  const gas = new GasBudget(
    { GAS_A_DAY: file.gasADay },
    clock,
    signing['dry-run'] ? NO_RECORD : openRecord(record, KeeperFileError),
  );
  if (file.root !== undefined) io.log(`Trusts the certificates of ${file.root} in place of AWS's root.`);
  const keeper = new Keeper(world, { ...file, random: Math.random, now: Date.now, clock });
  return { keeper, gas };
}

async function runOnce(start: Start, context: Context): Promise<Result> {
  const { keeper } = await createKeeper(start, context);
  const report = await keeper.round(new AbortController().signal);
  const isAlarmed = report.alerts.some(isAlarm);
  return {
    exit: isAlarmed ? EXIT.failed : EXIT.done,
    json: {
      status: start.signing['dry-run'] ? 'dry-run' : 'done',
      done: report.done,
      alerts: report.alerts.map((alert) => ({ ...alert, isWarning: !isAlarm(alert) })),
      accepted: report.accepted,
      silent: report.silent,
    },
    text: formatSummary(report).join('\n'),
  };
}

function formatSummary(report: Report): string[] {
  const lines = [...formatLines(report), ...report.alerts.map(formatLine)];
  return lines.length === 0 ? ['Nothing to do.'] : lines;
}

if (import.meta.main) await runAsProcess(main);
