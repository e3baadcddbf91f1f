/** What earlier processes of a keeper spent, as the chain has it: each of their registrations wrote the registrar. */
import { GrpcTypes, type SuiGrpcClient } from '@mysten/sui/grpc';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { SuiError } from 'sui-enclave/sui/errors';
import { waitUntilVisible } from 'sui-enclave/sui/send';
import { fromNode } from '../sui/chain.ts';
import { DAY_MS, type PastCost } from './budget.ts';

/** Registrations for about 100 SUI. */
const MAX_TRANSACTIONS = 5000;

const SHOWN_MS = 10_000;

const FIELDS = [
  'timestamp',
  'transaction.sender',
  'effects.gas_used',
  'effects.dependencies',
  'effects.changed_objects',
];

/**
 * The costs of the transactions with a registrar that an address sent in the last 24 hours of the chain, failed ones too.
 * Follows the versions of the registrar backwards: that needs no index, and no clock but the chain's.
 *
 * @param options.shownMs how long the node may show an object before the transaction that wrote it, in milliseconds
 * @throws SuiError, also if the node has pruned transactions of that time
 */
export async function readPastCosts(
  client: SuiGrpcClient,
  registrarId: string,
  sender: string,
  { signal, shownMs = SHOWN_MS }: { readonly signal: AbortSignal; readonly shownMs?: number },
): Promise<PastCost[]> {
  const include = { previousTransaction: true } as const;
  const { object } = await fromNode(client.core.getObject({ objectId: registrarId, include, signal }));
  const { previousTransaction: latest } = object;
  if (latest === null) throw unusable(`does not name the last transaction of the registrar ${registrarId}`);
  // In vain if the node has pruned it: the search finds that out.
  await waitUntilVisible(client, latest, { waitMs: shownMs, signal }).catch(() => undefined);
  const { ledgerService } = client;
  const { response: info } = await fromNode(ledgerService.getServiceInfo({}, { abort: signal }));
  const now = timeOf(info.timestamp);
  if (now === undefined) throw unusable('does not give the time of its last checkpoint');

  const costs: PastCost[] = [];
  let digests: string[] = [latest];
  let version: bigint | undefined = BigInt(object.version);
  for (let count = 0; count < MAX_TRANSACTIONS; count += 1) {
    const written = await findWrite(client, digests, { registrarId, version }, signal);
    if (written === undefined) {
      await checkPrunedBefore(client, now - DAY_MS, info.lowestAvailableCheckpoint, signal);
      return costs;
    }
    const { timestamp, sender: by, gasUsed, dependencies } = written;
    // Without a time, no checkpoint has it yet.
    const ageMs = Math.max(0, now - (timeOf(timestamp) ?? now));
    if (ageMs >= DAY_MS) return costs;
    if (normalizeSuiAddress(by) === normalizeSuiAddress(sender)) costs.push({ ageMs, mist: netOf(gasUsed) });
    version = written.versionBefore;
    // It made the registrar.
    if (version === undefined) return costs;
    digests = dependencies;
  }
  throw unusable(`has more than ${MAX_TRANSACTIONS} transactions of the last 24 hours with ${registrarId}`);
}

/** A transaction that wrote the registrar. */
interface Write {
  readonly timestamp: GrpcTypes.ExecutedTransaction['timestamp'];
  readonly sender: string;
  readonly gasUsed: Costs;
  readonly dependencies: string[];
  /** Of the registrar; undefined if it made the registrar. */
  readonly versionBefore: bigint | undefined;
}

/** Which of the transactions wrote this version of the registrar; undefined if the node has none that did. */
async function findWrite(
  { ledgerService }: SuiGrpcClient,
  digests: string[],
  { registrarId, version }: { readonly registrarId: string; readonly version: bigint },
  signal: AbortSignal,
): Promise<Write | undefined> {
  const request = { digests, readMask: { paths: FIELDS } };
  const { response } = await fromNode(ledgerService.batchGetTransactions(request, { abort: signal }));
  for (const { result } of response.transactions) {
    if (result.oneofKind !== 'transaction') continue;
    const { transaction, effects, timestamp } = result.transaction;
    const change = effects?.changedObjects.find(
      ({ objectId = '', outputVersion }) =>
        normalizeSuiAddress(objectId) === registrarId && outputVersion === version,
    );
    if (effects === undefined || change === undefined) continue;
    const { gasUsed, dependencies } = effects;
    const { sender } = transaction ?? {};
    const { inputVersion: versionBefore, idOperation } = change;
    const isFirst = idOperation === GrpcTypes.ChangedObject_IdOperation.CREATED;
    if (sender === undefined || gasUsed === undefined || (versionBefore === undefined && !isFirst)) {
      throw unusable(`leaves out a part of the transactions with the registrar ${registrarId}`);
    }
    return { timestamp, sender, gasUsed, dependencies, versionBefore };
  }
  return undefined;
}

/** Checks that a transaction that the node does not have is older than a time, in milliseconds since 1970. */
async function checkPrunedBefore(
  { ledgerService }: SuiGrpcClient,
  timeMs: number,
  sequenceNumber: bigint | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (sequenceNumber === undefined) throw unusable('does not say which checkpoints it has');
  const { response } = await fromNode(
    ledgerService.getCheckpoint(
      {
        checkpointId: { oneofKind: 'sequenceNumber', sequenceNumber },
        readMask: { paths: ['summary.timestamp'] },
      },
      { abort: signal },
    ),
  );
  const oldest = timeOf(response.checkpoint?.summary?.timestamp);
  if (oldest === undefined || oldest > timeMs) throw unusable('does not have all of the last 24 hours');
}

function netOf({ computationCost = 0n, storageCost = 0n, storageRebate = 0n }: Costs): bigint {
  return computationCost + storageCost - storageRebate;
}

type Costs = Pick<GrpcTypes.GasCostSummary, 'computationCost' | 'storageCost' | 'storageRebate'>;

/** In milliseconds since 1970. */
function timeOf(timestamp: { readonly seconds: bigint; readonly nanos: number } | undefined) {
  return timestamp && Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1_000_000);
}

function unusable(reason: string): SuiError {
  return new SuiError('SUI_NODE_ANSWER', `the node ${reason}`);
}
