/** The effects of a transaction in BCS (`TransactionEffects` of sui-types), which a wallet returns to a dapp. */
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { digestOf, type LedgerObject } from './ledger.ts';

interface Context {
  /** The changed objects as they were. */
  readonly before: Pick<ReadonlyMap<string, LedgerObject>, 'get'>;
  /** The changed objects as they are. */
  readonly after: Pick<ReadonlyMap<string, LedgerObject>, 'get'>;
  readonly version: bigint;
}

/** Of a transaction that did not fail; for one that failed, the model has none. */
export function effectsBytes(
  { status, transactionDigest = '', epoch = 0n, gasUsed, changedObjects }: GrpcTypes.TransactionEffects,
  context: Context,
): Uint8Array | undefined {
  if (status?.success !== true) return undefined;
  const {
    computationCost = 0n,
    storageCost = 0n,
    storageRebate = 0n,
    nonRefundableStorageFee = 0n,
  } = gasUsed ?? {};
  const V2 = {
    status: { Success: true },
    executedEpoch: epoch,
    gasUsed: { computationCost, storageCost, storageRebate, nonRefundableStorageFee },
    transactionDigest,
    gasObjectIndex: null,
    eventsDigest: null,
    dependencies: [],
    lamportVersion: context.version,
    changedObjects: changedObjects.map((change) => changeOf(change, transactionDigest, context)),
    unchangedConsensusObjects: [],
    auxDataDigest: null,
  } as const;
  return bcs.TransactionEffects.serialize({ V2 }).toBytes();
}

function changeOf(
  { objectId = '', idOperation }: GrpcTypes.ChangedObject,
  transactionDigest: string,
  { before, after, version }: Context,
) {
  const [old, now] = [before.get(objectId), after.get(objectId)];
  const isCreated = idOperation === GrpcTypes.ChangedObject_IdOperation.CREATED;
  const inputState = old
    ? ({ Exist: [[old.version, digestOf(old)], ownerOf(old)] } as const)
    : ({ NotExist: true } as const);
  // A package: the model keeps those apart, and without a digest.
  const outputState = now
    ? ({ ObjectWrite: [digestOf(now), ownerOf(now)] } as const)
    : ({ PackageWrite: [version, transactionDigest] } as const);
  const operation = isCreated ? ({ Created: true } as const) : ({ None: true } as const);
  return [objectId, { inputState, outputState, idOperation: operation }] as const;
}

function ownerOf({ owner }: LedgerObject) {
  switch (owner.kind) {
    case 'address':
      return { AddressOwner: owner.address };
    case 'object':
      return { ObjectOwner: owner.address };
    case 'shared':
      return { Shared: { initialSharedVersion: owner.since } };
    case 'immutable':
      return { Immutable: true } as const;
  }
}
