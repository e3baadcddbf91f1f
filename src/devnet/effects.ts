/**
 * Creates the effects of a transaction, in gRPC and in BCS (`TransactionEffects` of sui-types). A wallet
 * returns the BCS to a dapp.
 */
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import type { Published } from './engine.ts';
import { encodeFailure } from './failure_bcs.ts';
import type { Status } from './failures.ts';
import { type Changes, computeDigest, type Ledger, type LedgerObject, type Owner } from './ledger.ts';
import { type Packages, versionOf } from './packages.ts';

const {
  ChangedObject_IdOperation: Id,
  ChangedObject_InputObjectState: InputState,
  ChangedObject_OutputObjectState: OutputState,
  Owner_OwnerKind: OwnerKind,
} = GrpcTypes;

/** The change of an object by a transaction. */
interface Change {
  readonly id: string;
  readonly before: LedgerObject | undefined;
  readonly after: LedgerObject | undefined;
  /**
   * Operation on the id. `none`: the object was changed, was put into another object, or was taken out of
   * one.
   */
  readonly operation: 'created' | 'deleted' | 'none';
}

interface Outcome {
  readonly status: Status;
  readonly digest: string;
  readonly epoch: bigint;
  readonly gasUsed: GrpcTypes.GasCostSummary;
  /** Id of the coin that paid for the gas. */
  readonly gasCoin: string;
  readonly published: Published | undefined;
  /** Packages of the chain, including the published one. */
  readonly packages: Packages;
}

/** Creates the effects in gRPC, which include those in BCS. @param ledger state before the transaction */
export function createEffects(
  changes: Changes,
  ledger: Ledger,
  outcome: Outcome,
): GrpcTypes.TransactionEffects {
  const { status, digest, epoch, gasUsed, gasCoin, published, packages } = outcome;
  const objectChanges = listChanges(changes, ledger);
  const changedObjects = describeChanges(changes, ledger);
  if (published !== undefined) {
    changedObjects.push(
      GrpcTypes.ChangedObject.create({
        objectId: published.id,
        objectType: 'package',
        inputState: InputState.DOES_NOT_EXIST,
        outputState: OutputState.PACKAGE_WRITE,
        outputVersion: BigInt(versionOf(packages, published.id)),
        outputDigest: digest,
        outputOwner: GrpcTypes.Owner.create({ kind: OwnerKind.IMMUTABLE }),
        idOperation: Id.CREATED,
      }),
    );
  }
  const gasObject = changedObjects.find(({ objectId }) => objectId === gasCoin);
  const effects = GrpcTypes.TransactionEffects.create({
    status,
    transactionDigest: digest,
    epoch,
    gasUsed,
    changedObjects,
    lamportVersion: changes.version,
    ...(gasObject && { gasObject }),
  });
  const value = encodeEffects(effects, objectChanges, outcome);
  return { ...effects, bcs: GrpcTypes.Bcs.create({ name: 'TransactionEffects', value }) };
}

/** Describes the objects that a transaction changes. @param ledger state before the transaction */
export function describeChanges(changes: Changes, ledger: Ledger): GrpcTypes.ChangedObject[] {
  return listChanges(changes, ledger).map(describeChange);
}

/** Lists the changes. Objects that the transaction both created and destroyed are not in its effects. */
function listChanges({ written, deleted, created, destroyed }: Changes, { objects }: Ledger): Change[] {
  const writes = [...written.values()].map((after): Change => {
    const before = objects.get(after.id);
    const operation = before === undefined && created.has(after.id) ? 'created' : 'none';
    return { id: after.id, before, after, operation };
  });
  const removals = [...new Set([...deleted, ...destroyed])].flatMap((id): Change[] => {
    const before = objects.get(id);
    // A transaction may take an object out of another object and delete it. The ledger never had it.
    const hadExisted = before !== undefined || (destroyed.has(id) && !created.has(id));
    if (written.has(id) || !hadExisted) return [];
    return [{ id, before, after: undefined, operation: destroyed.has(id) ? 'deleted' : 'none' }];
  });
  return [...writes, ...removals];
}

function describeChange({ id, before, after, operation }: Change): GrpcTypes.ChangedObject {
  const objectType = (after ?? before)?.type;
  return GrpcTypes.ChangedObject.create({
    objectId: id,
    ...(objectType !== undefined && { objectType }),
    ...(before === undefined
      ? { inputState: InputState.DOES_NOT_EXIST }
      : {
          inputState: InputState.EXISTS,
          inputVersion: before.version,
          inputDigest: computeDigest(before),
          inputOwner: toGrpcOwner(before.owner),
        }),
    ...(after === undefined
      ? { outputState: OutputState.DOES_NOT_EXIST }
      : {
          outputState: OutputState.OBJECT_WRITE,
          outputVersion: after.version,
          outputDigest: computeDigest(after),
          outputOwner: toGrpcOwner(after.owner),
        }),
    idOperation: { created: Id.CREATED, deleted: Id.DELETED, none: Id.NONE }[operation],
  });
}

export function toGrpcOwner(owner: Owner): GrpcTypes.Owner {
  const kind = {
    address: OwnerKind.ADDRESS,
    object: OwnerKind.OBJECT,
    shared: OwnerKind.SHARED,
    immutable: OwnerKind.IMMUTABLE,
  }[owner.kind];
  return GrpcTypes.Owner.create({
    kind,
    ...('address' in owner && { address: owner.address }),
    ...(owner.kind === 'shared' && { version: owner.since }),
  });
}

function encodeEffects(
  { status, transactionDigest = '', epoch = 0n, gasUsed, lamportVersion = 0n }: GrpcTypes.TransactionEffects,
  objectChanges: readonly Change[],
  { published, packages, gasCoin }: Outcome,
): Uint8Array {
  const {
    computationCost = 0n,
    storageCost = 0n,
    storageRebate = 0n,
    nonRefundableStorageFee = 0n,
  } = gasUsed ?? {};
  const gasObjectIndex = objectChanges.findIndex(({ id }) => id === gasCoin);
  const written = objectChanges.map((change) => [change.id, toBcsChange(change)] as const);
  const V2 = {
    status: status?.error === undefined ? { Success: true } : { Failure: encodeFailure(status.error) },
    executedEpoch: epoch,
    gasUsed: { computationCost, storageCost, storageRebate, nonRefundableStorageFee },
    transactionDigest,
    gasObjectIndex: gasObjectIndex < 0 ? null : gasObjectIndex,
    eventsDigest: null,
    dependencies: [],
    lamportVersion,
    changedObjects:
      published === undefined
        ? written
        : [...written, [published.id, toBcsPackage(versionOf(packages, published.id), transactionDigest)]],
    unchangedConsensusObjects: [],
    auxDataDigest: null,
  } as const;
  return bcs.TransactionEffects.serialize({ V2 } as never).toBytes();
}

function toBcsChange({ before, after, operation }: Change) {
  const inputState =
    before === undefined
      ? ({ NotExist: true } as const)
      : ({ Exist: [[before.version, computeDigest(before)], toBcsOwner(before.owner)] } as const);
  const outputState =
    after === undefined
      ? ({ NotExist: true } as const)
      : ({ ObjectWrite: [computeDigest(after), toBcsOwner(after.owner)] } as const);
  const idOperation = {
    created: { Created: true },
    deleted: { Deleted: true },
    none: { None: true },
  }[operation];
  return { inputState, outputState, idOperation } as const;
}

/** Describes a package in BCS. @param digest the transaction's: packages have no digest in this model */
function toBcsPackage(version: number, digest: string) {
  return {
    inputState: { NotExist: true },
    outputState: { PackageWrite: [version, digest] },
    idOperation: { Created: true },
  } as const;
}

function toBcsOwner(owner: Owner) {
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
