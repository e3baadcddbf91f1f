/** Stores the objects of a loopback Sui node, and the changes of a transaction to them. */
import { bcs } from '@mysten/sui/bcs';
import { fromBase58, normalizeStructTag, normalizeSuiAddress, toBase58 } from '@mysten/sui/utils';
import { blake2b } from '@noble/hashes/blake2.js';
import type { Package } from './packages.ts';

export type Owner =
  | { readonly kind: 'address' | 'object'; readonly address: string }
  | { readonly kind: 'shared'; readonly since: bigint }
  | { readonly kind: 'immutable' };

export interface LedgerObject {
  readonly id: string;
  readonly type: string;
  readonly owner: Owner;
  readonly version: bigint;
  readonly content: Uint8Array;
}

export const COIN = normalizeStructTag('0x2::coin::Coin<0x2::sui::SUI>');
const COIN_TYPE = /^0x0{63}2::coin::Coin</;
export const CLAIMED = normalizeStructTag('0x2::derived_object::Claimed');
/** The Random object, which has the id 0x8. */
export const RANDOM: LedgerObject = {
  id: normalizeSuiAddress('0x8'),
  type: normalizeStructTag('0x2::random::Random'),
  owner: { kind: 'shared', since: 1n },
  version: 1n,
  content: bcs.Address.serialize('0x8').toBytes(),
};
/** Returns the Clock, which has the id 0x6. @param nowMs the chain's time in milliseconds since 1970 */
export function clockAt(nowMs: number): LedgerObject {
  const id = normalizeSuiAddress('0x6');
  return {
    id,
    type: normalizeStructTag('0x2::clock::Clock'),
    owner: { kind: 'shared', since: 1n },
    version: 1n,
    content: ClockContent.serialize({ id, timestampMs: nowMs }).toBytes(),
  };
}
const ClockContent = bcs.struct('Clock', { id: bcs.Address, timestampMs: bcs.u64() });
const CoinContent = bcs.struct('Coin', { id: bcs.Address, balance: bcs.u64() });

/** First of the bytes whose hash is the id of a new object (`HashingIntentScope::RegularObjectId`). */
const REGULAR_OBJECT_ID = Uint8Array.of(0xf1);
const DIGEST_BYTES = 32;

function digestBytes(seed: string): Uint8Array {
  const isBase58 = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(seed);
  const digest = isBase58 ? fromBase58(seed) : Uint8Array.of();
  return digest.length === DIGEST_BYTES ? digest : blake2b(Buffer.from(seed), { dkLen: DIGEST_BYTES });
}

export function computeDigest({ id, version, content }: LedgerObject): string {
  return toBase58(blake2b(Buffer.concat([Buffer.from(`${id}:${version}`), content]), { dkLen: 32 }));
}

/** Changes of a transaction to a ledger. Only the transaction sees them until the ledger commits them. */
export class Changes {
  readonly #ledger: Ledger;
  /** Digest of 32 bytes, from which new ids are derived. */
  readonly digest: Uint8Array;
  #fresh = 0n;
  readonly written = new Map<string, LedgerObject>();
  /** Objects that are no longer on the ledger: destroyed, or put into another object. */
  readonly deleted = new Set<string>();
  /** Ids that the transaction created. */
  readonly created = new Set<string>();
  /** Ids that the transaction destroyed. */
  readonly destroyed = new Set<string>();
  readonly version: bigint;

  /** @param seed digest of the transaction in base58, or another unique text */
  constructor(ledger: Ledger, seed: string) {
    this.#ledger = ledger;
    this.digest = digestBytes(seed);
    this.version = ledger.clock + 1n;
  }

  get(id: string): LedgerObject | undefined {
    return this.deleted.has(id) ? undefined : (this.written.get(id) ?? this.#ledger.objects.get(id));
  }

  /** Returns the next id of the transaction, as Sui derives it (`ObjectID::derive_id` of sui-types). */
  freshId(): string {
    const count = bcs.u64().serialize(this.#fresh).toBytes();
    this.#fresh += 1n;
    const hash = blake2b(Buffer.concat([REGULAR_OBJECT_ID, this.digest, count]), { dkLen: 32 });
    const id = `0x${Buffer.from(hash).toString('hex')}`;
    this.created.add(id);
    return id;
  }

  write(object: Omit<LedgerObject, 'version'>): string {
    this.written.set(object.id, { ...object, version: this.version });
    this.deleted.delete(object.id);
    return object.id;
  }

  /** Creates an object. @param content returns the content, which starts with the id */
  create(type: string, owner: Owner, content: (id: string) => Uint8Array, id = this.freshId()): string {
    return this.write({ id, type: normalizeStructTag(type), owner, content: content(id) });
  }

  shared(): Owner {
    return { kind: 'shared', since: this.version };
  }

  /** Removes an object that has become a value of the transaction, or was put into another object. */
  delete(id: string): void {
    this.deleted.add(id);
    this.written.delete(id);
  }

  /** Destroys an object and its id. */
  destroy(id: string): void {
    this.destroyed.add(id);
  }
}

export class Ledger {
  readonly objects = new Map<string, LedgerObject>();
  /** Packages by id, the oldest first. */
  readonly packages = new Map<string, Package>();
  /** Ids of objects that another transaction has locked, according to the validators. */
  readonly locked = new Set<string>();
  /** Digests of the executed transactions. */
  readonly executed: string[] = [];
  clock = 1n;

  /** Returns a copy of the present state, which later transactions do not change. */
  copy(): Ledger {
    const copy = new Ledger();
    for (const [id, object] of this.objects) copy.objects.set(id, object);
    for (const [id, movePackage] of this.packages) copy.packages.set(id, movePackage);
    for (const id of this.locked) copy.locked.add(id);
    copy.executed.push(...this.executed);
    copy.clock = this.clock;
    return copy;
  }

  commit(digest: string, { written, deleted, version }: Changes): void {
    for (const [id, object] of written) this.objects.set(id, object);
    for (const id of deleted) this.objects.delete(id);
    this.executed.push(digest);
    this.clock = version;
  }

  /** Creates a coin of SUI for an address. @param balance in MIST @returns the coin's id */
  give(owner: string, balance: bigint): string {
    const changes = new Changes(this, `coin:${this.clock}`);
    const coin = changes.create(COIN, { kind: 'address', address: owner }, (id) =>
      CoinContent.serialize({ id, balance }).toBytes(),
    );
    this.commit('gift', changes);
    return coin;
  }

  coins(owner: string): { object: LedgerObject; balance: bigint }[] {
    return this.owned(owner)
      .filter(({ type }) => type === COIN)
      .map((object) => ({ object, balance: this.balanceOf(object) }));
  }

  /** Returns whether the object is a coin of any currency. */
  isCoin({ type }: LedgerObject): boolean {
    return COIN_TYPE.test(type);
  }

  owned(owner: string): LedgerObject[] {
    const address = normalizeSuiAddress(owner);
    return [...this.objects.values()].filter(
      (object) => object.owner.kind === 'address' && object.owner.address === address,
    );
  }

  /** Returns the objects that are dynamic fields of an object. */
  fields(parent: string): LedgerObject[] {
    return [...this.objects.values()].filter(
      (object) => object.owner.kind === 'object' && object.owner.address === parent,
    );
  }

  /** Returns the balance of a coin, in MIST. */
  balanceOf({ content }: LedgerObject): bigint {
    return BigInt(CoinContent.parse(content).balance);
  }

  /** Writes a coin with a changed balance. @param mist amount to add, which may be negative */
  addBalance(changes: Changes, coin: string, mist: bigint): LedgerObject {
    const object = changes.get(coin);
    if (!object) throw new Error('the gas coin does not exist');
    const balance = this.balanceOf(object) + mist;
    changes.write({ ...object, content: CoinContent.serialize({ id: object.id, balance }).toBytes() });
    return changes.written.get(coin) ?? object;
  }
}

/** Returns a coin of SUI at the address 0x0, which no ledger has. @param balance in MIST */
export function createMockCoin(id: string, balance: bigint): LedgerObject {
  const content = CoinContent.serialize({ id, balance }).toBytes();
  return {
    id,
    type: COIN,
    owner: { kind: 'address', address: normalizeSuiAddress('0x0') },
    version: 1n,
    content,
  };
}
