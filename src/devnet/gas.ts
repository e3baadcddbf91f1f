/**
 * Computes gas in MIST, as Sui 1.63 charges it at a price of 1,000 MIST. The cost of storage is exactly Sui's
 * (`object_size_for_gas_metering` of sui-types). The cost of computation was measured for a few kinds of
 * calls.
 */
import type { GrpcTypes } from '@mysten/sui/grpc';
import type { Command } from './commands.ts';
import type { Published } from './engine.ts';
import { type Changes, COIN, type Ledger, type LedgerObject } from './ledger.ts';
import { type MoveType, parseType } from './move/types.ts';
import { findLinkage, findTypeOrigins, loadModules, type Packages } from './packages.ts';

const PRICE = 1000n;
/** Units of computation of any transaction. */
const BASE_UNITS = 500n;
/** Units of computation for the verification of an attestation document. */
const DOCUMENT_UNITS = 13_140n;
/** Step to which the units of computation are rounded up. */
const UNIT_STEP = 1000n;
/** Storage price of a byte in MIST: 100 units at 76 MIST. */
const STORAGE_PRICE = 7600n;
/** Percentage of the storage cost that is refunded on deletion. */
const REFUND_PERCENT = 99n;
/** Size in bytes of the metadata of every object: owner, digest of the transaction, rebate. */
const OBJECT_BYTES = 80;
/** Size in bytes of the metadata of an object with a Move type: version, and whether it has `store`. */
const MOVE_OBJECT_BYTES = 9;
const ADDRESS_BYTES = 32;
const NUMBER_BYTES = 8;
/** Margin in MIST that a node adds to the cost of a simulation when it proposes a budget. */
const MARGIN = 155_000_000n;

export type GasUsed = Required<GrpcTypes.GasCostSummary>;

function sizeOf({ type, content }: LedgerObject): bigint {
  return BigInt(OBJECT_BYTES + MOVE_OBJECT_BYTES + objectTypeBytes(type) + content.length);
}

/** Returns the size of a `MoveObjectType` in BCS, which has short forms for coins. */
function objectTypeBytes(text: string): number {
  if (text === COIN) return 1;
  const type = parseType(text);
  if (type.kind !== 'struct') return 1;
  const [inner] = type.args;
  const isCoin = type.module === 'coin' && type.name === 'Coin' && /^0x0*2$/.test(type.address);
  return isCoin && inner !== undefined ? 1 + typeBytes(inner) : typeBytes(type);
}

/** Returns the size of a `TypeTag` in BCS. */
function typeBytes(type: MoveType): number {
  if (type.kind === 'vector') return 1 + typeBytes(type.of);
  if (type.kind !== 'struct') return 1;
  const args = type.args.reduce((bytes, arg) => bytes + typeBytes(arg), 0);
  return 1 + ADDRESS_BYTES + 1 + type.module.length + 1 + type.name.length + 1 + args;
}

function packageSize(packages: Packages, published: Published): bigint {
  const modules = [...loadModules(published).values()].map(
    ({ moduleInterface }, index) => moduleInterface.name.length + (published.modules[index]?.length ?? 0),
  );
  const all = new Map([...packages, [published.id, published]]);
  const origins = [...findTypeOrigins(all, published.id).keys()].map(
    (type) => type.length - '::'.length + ADDRESS_BYTES,
  );
  const links = findLinkage(all, published.id).size * (2 * ADDRESS_BYTES + NUMBER_BYTES);
  const parts = [OBJECT_BYTES, NUMBER_BYTES, links, ...modules, ...origins];
  return BigInt(parts.reduce((total, part) => total + part, 0));
}

export function computeGas(
  { written, deleted }: Changes,
  ledger: Ledger,
  commands: readonly Command[],
  published: Published | undefined,
): GasUsed {
  const documents = commands.filter(
    (command) => command.kind === 'call' && command.call.function === 'load_nitro_attestation',
  );
  const before = [...new Set([...written.keys(), ...deleted])].flatMap((id) => ledger.objects.get(id) ?? []);
  const code = published === undefined ? 0n : packageSize(ledger.packages, published);
  const stored = sum([...written.values()].map(sizeOf)) + code;
  return summarizeGas(
    BASE_UNITS + DOCUMENT_UNITS * BigInt(documents.length),
    stored,
    sum(before.map(sizeOf)),
  );
}

function summarizeGas(units: bigint, stored: bigint, freed: bigint): GasUsed {
  const storageRebate = (freed * STORAGE_PRICE * REFUND_PERCENT) / 100n;
  return {
    computationCost: ((units + UNIT_STEP - 1n) / UNIT_STEP) * UNIT_STEP * PRICE,
    storageCost: stored * STORAGE_PRICE,
    storageRebate,
    nonRefundableStorageFee: freed * STORAGE_PRICE - storageRebate,
  };
}

/** Returns the net cost, which is negative if a transaction frees more storage than it uses. */
export function netOf({ computationCost, storageCost, storageRebate }: GasUsed): bigint {
  return computationCost + storageCost - storageRebate;
}

export function proposeBudget(gas: GasUsed): bigint {
  const net = netOf(gas);
  return MARGIN + (net > 0n ? net : 0n);
}

function sum(values: readonly bigint[]): bigint {
  return values.reduce((total, value) => total + value, 0n);
}
