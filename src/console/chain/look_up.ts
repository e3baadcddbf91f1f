/** Reads one object or one transaction from a Sui node. */
import { Transaction } from '@mysten/sui/transactions';
import { createNodeClient, formatOwner } from './read.ts';

export interface ObjectEntry {
  readonly kind: 'object';
  readonly id: string;
  readonly type: string;
  readonly version: string;
  readonly owner: string;
  /** Digest of the transaction that wrote the object; null if the node does not name it. */
  readonly transaction: string | null;
  /** Fields in JSON, if the node has them. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface TransactionEntry {
  readonly kind: 'transaction';
  readonly digest: string;
  readonly sender: string;
  readonly calls: readonly string[];
  /** Reason of the failure; null if the transaction succeeded. */
  readonly failure: string | null;
  /** Net gas of the transaction, in MIST. */
  readonly gas: bigint;
  readonly changes: readonly { readonly id: string; readonly change: string; readonly type: string }[];
}

export type Entry = ObjectEntry | TransactionEntry;

const OBJECT_ID = /^0x[0-9a-f]{1,64}$/i;
/** Matches the base58 of 32 bytes. */
const DIGEST = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;
const MAX_LISTED = 100;

export function isObjectId(id: string): boolean {
  return OBJECT_ID.test(id);
}

/** Returns whether a text is an object id or the digest of a transaction. */
export function isLookUpId(id: string): boolean {
  return isObjectId(id) || DIGEST.test(id);
}

/** Reads the object or the transaction with this id. @throws Error of the client; the signal's reason */
export async function lookUp(node: URL, id: string, signal: AbortSignal): Promise<Entry> {
  return isObjectId(id) ? await lookUpObject(node, id, signal) : await lookUpTransaction(node, id, signal);
}

async function lookUpObject(node: URL, objectId: string, signal: AbortSignal): Promise<ObjectEntry> {
  const include = { json: true, previousTransaction: true } as const;
  const { object } = await createNodeClient(node).core.getObject({ objectId, include, signal });
  // The id is shown already.
  const fields = Object.entries(object.json ?? {})
    .filter(([name]) => name !== 'id')
    .slice(0, MAX_LISTED);
  return {
    kind: 'object',
    id: object.objectId,
    type: object.type,
    version: object.version,
    owner: formatOwner(object.owner),
    transaction: object.previousTransaction ?? null,
    fields: fields.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  };
}

async function lookUpTransaction(node: URL, digest: string, signal: AbortSignal): Promise<TransactionEntry> {
  const include = { effects: true, bcs: true, objectTypes: true } as const;
  const answer = await createNodeClient(node).core.getTransaction({ digest, include, signal });
  const { status, effects, bcs, objectTypes } = answer.Transaction ?? answer.FailedTransaction;
  const { sender, commands } = Transaction.from(bcs).getData();
  const { computationCost, storageCost, storageRebate } = effects.gasUsed;
  return {
    kind: 'transaction',
    digest,
    sender: sender ?? '',
    calls: commands.slice(0, MAX_LISTED).map(formatCommand),
    failure: status.success ? null : status.error.message,
    gas: BigInt(computationCost) + BigInt(storageCost) - BigInt(storageRebate),
    changes: effects.changedObjects.slice(0, MAX_LISTED).map(({ objectId, idOperation, outputState }) => ({
      id: objectId,
      change: describeChange(idOperation, outputState),
      type: objectTypes[objectId] ?? (outputState === 'PackageWrite' ? 'package' : ''),
    })),
  };
}

function formatCommand({
  $kind,
  MoveCall: call,
}: ReturnType<Transaction['getData']>['commands'][number]): string {
  return call ? `${call.package}::${call.module}::${call.function}` : $kind;
}

function describeChange(idOperation: string, outputState: string): string {
  if (idOperation === 'Created') return 'created';
  return idOperation === 'Deleted' || outputState === 'DoesNotExist' ? 'deleted' : 'changed';
}
