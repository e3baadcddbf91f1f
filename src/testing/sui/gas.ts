/** Gas, near to what Sui 1.63 charges at a price of 1,000 MIST: in MIST, and by the sizes of objects. */
import type { GrpcTypes } from '@mysten/sui/grpc';
import type { Command } from './commands.ts';
import type { Changes, Ledger, LedgerObject } from './ledger.ts';

/** The lowest bucket of computation, which most calls are in, and what verifying a document adds to it. */
const COMPUTATION = 1_000_000n;
const DOCUMENT = 13_000_000n;
/** Of a byte: 100 units at 76 MIST. */
const STORAGE = 7600n;
/** Of 100 parts that storage costs, those which come back when it is freed. */
const REFUNDED = 99n;
/** Of an object beside its type and its content: owner, version, digest of the transaction, rebate. */
const OBJECT_BYTES = 60;
/** What a node adds to the cost of a simulation when it proposes a budget. */
const MARGIN = 154_000_000n;

export type GasUsed = Required<GrpcTypes.GasCostSummary>;

function sizeOf({ type, content }: LedgerObject): bigint {
  // An address of 66 characters is 32 bytes in the type, and a name about as long as its text.
  const addresses = type.match(/0x[0-9a-f]{64}/g)?.length ?? 0;
  return BigInt(OBJECT_BYTES + type.length - 34 * addresses + content.length);
}

export function gasOf(
  { written, deleted }: Changes,
  ledger: Ledger,
  commands: readonly Command[],
  gasCoin: LedgerObject | undefined,
): GasUsed {
  const documents = commands.filter(
    (command) => command.kind === 'call' && command.call.function === 'load_nitro_attestation',
  );
  const known = (id: string) => ledger.objects.get(id) ?? [];
  // The coin that pays is written in any case.
  const touched = new Set([...written.keys(), ...deleted, ...(gasCoin === undefined ? [] : [gasCoin.id])]);
  const after = [...touched].filter((id) => !deleted.has(id)).flatMap((id) => written.get(id) ?? known(id));
  const before = [...touched].flatMap(known);
  const modules = commands.flatMap((command) => ('modules' in command ? command.modules : []));
  const stored = sum(after.map(sizeOf)) + sum(modules.map(({ length }) => BigInt(length)));
  const freed = sum(before.map(sizeOf)) * STORAGE;
  const storageRebate = (freed * REFUNDED) / 100n;
  return {
    computationCost: COMPUTATION + DOCUMENT * BigInt(documents.length),
    storageCost: stored * STORAGE,
    storageRebate,
    nonRefundableStorageFee: freed - storageRebate,
  };
}

/** What a transaction costs that fails: it changes nothing but the coin. */
export const FAILED_GAS: GasUsed = {
  computationCost: COMPUTATION,
  storageCost: 0n,
  storageRebate: 0n,
  nonRefundableStorageFee: 0n,
};

/** Negative where more is freed than stored. */
export function netOf({ computationCost, storageCost, storageRebate }: GasUsed): bigint {
  return computationCost + storageCost - storageRebate;
}

export function proposedBudget({ computationCost, storageCost }: GasUsed): bigint {
  return MARGIN + computationCost + storageCost;
}

function sum(values: readonly bigint[]): bigint {
  return values.reduce((total, value) => total + value, 0n);
}
