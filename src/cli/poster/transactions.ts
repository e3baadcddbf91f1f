/**
 * The file with a poster's signed transactions in flight, so that the same bytes are sent again after a
 * restart. The file contains no key. While a transaction can still be executed, no other transaction is
 * signed with the same version of its coin: validators would lock the coin.
 */
import { bcs } from '@mysten/sui/bcs';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { replaceFileDurably } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readRegularFile } from '../read_file.ts';
import { objectId } from '../values.ts';
import { PosterFileError } from './file.ts';

/** A signed transaction. */
export interface SignedPost {
  /** BCS of the transaction's data. */
  readonly transaction: Uint8Array;
  /** The poster's signature in base64. */
  readonly signature: string;
  /** URL of the enclave that gave the value. */
  readonly url: string;
  /** Time of the value, in milliseconds since 1970. */
  readonly timestampMs: bigint;
}

/** A signed transaction, with the digest, the gas coin and the last epoch that its bytes contain. */
export interface Pending extends SignedPost {
  /** Digest of the transaction, in base58. */
  readonly digest: string;
  /** The coin that pays for gas, at the version that the transaction names. */
  readonly coin: { readonly id: string; readonly version: bigint };
  /** The last epoch in which the transaction can be executed. */
  readonly lastEpoch: bigint;
}

/** Version of a coin that a signed transaction uses. */
interface UsedCoin {
  readonly id: string;
  readonly version: bigint;
  /** The last epoch in which that transaction can be executed. */
  readonly lastEpoch: bigint;
}

const u64 = v.pipe(
  v.string(),
  v.regex(/^(0|[1-9]\d{0,19})$/),
  v.transform((digits) => BigInt(digits)),
  v.maxValue(2n ** 64n - 1n),
);
const base64 = v.pipe(v.string(), v.base64(), v.maxLength(200_000));

const TransactionsFile = v.strictObject({
  /** Time of the newest value that a signed transaction posts. */
  newest: v.nullable(u64),
  used: v.array(v.strictObject({ coin: objectId, version: u64, last_epoch: u64 })),
  pending: v.array(
    v.strictObject({
      transaction: base64,
      signature: base64,
      url: v.pipe(v.string(), v.maxLength(2000)),
      timestamp_ms: u64,
    }),
  ),
});

type Content = v.InferOutput<typeof TransactionsFile>;
const EMPTY: Content = { newest: null, used: [], pending: [] };

/** The signed transactions of a poster. Each change is on the disk before the method returns. */
export class Transactions {
  readonly #path: string | undefined;
  #newestMs: bigint | null;
  #used: readonly UsedCoin[];
  #pending: readonly Pending[];

  /**
   * @param path the file, which is created if it is missing; undefined for a process that signs nothing
   * @param sender address of the poster
   * @throws PosterFileError if the file can't be read or written, or does not have this sender's transactions
   */
  constructor(path: string | undefined, sender: string) {
    this.#path = path;
    const { newest, used, pending } = path === undefined ? EMPTY : read(path);
    this.#newestMs = newest;
    this.#used = used.map(({ coin: id, version, last_epoch: lastEpoch }) => ({ id, version, lastEpoch }));
    this.#pending = pending.map((entry) => {
      const { transaction, signature, url, timestamp_ms: timestampMs } = entry;
      try {
        return describePost({ transaction: fromBase64(transaction), signature, url, timestampMs }, sender);
      } catch (cause) {
        throw createFileError(path ?? '', cause);
      }
    });
    this.#write();
  }

  /** Time of the newest value in a signed transaction, in milliseconds since 1970; null before the first. */
  get newestMs(): bigint | null {
    return this.#newestMs;
  }

  /** The transactions in flight, the oldest first. */
  get pending(): readonly Pending[] {
    return this.#pending;
  }

  /** Returns whether the coin is in use at this version, so that no transaction may be signed with it. */
  isUsed(id: string, version: bigint): boolean {
    const isPending = this.#pending.some(({ coin }) => coin.id === id);
    return isPending || this.#used.some((used) => used.id === id && used.version >= version);
  }

  /** Records a signed transaction. @throws PosterFileError; the transaction must then not be sent */
  add(post: Pending): void {
    const { coin, lastEpoch, timestampMs } = post;
    const used = [...this.#used.filter(({ id }) => id !== coin.id), { ...coin, lastEpoch }];
    const newestMs = this.#newestMs === null || timestampMs > this.#newestMs ? timestampMs : this.#newestMs;
    this.#replace({ used, newestMs, pending: [...this.#pending, post] });
  }

  /** Forgets a transaction that was executed, or whose coin another transaction used. */
  settle(digest: string): void {
    this.#replace({ pending: this.#pending.filter((post) => post.digest !== digest) });
  }

  /** Forgets the coins and transactions whose last epoch is over. @returns these transactions */
  expire(epoch: bigint): readonly Pending[] {
    const isOver = ({ lastEpoch }: { readonly lastEpoch: bigint }) => epoch > lastEpoch;
    const expired = this.#pending.filter(isOver);
    if (expired.length === 0 && !this.#used.some(isOver)) return [];
    const used = this.#used.filter((coin) => !isOver(coin));
    this.#replace({ used, pending: this.#pending.filter((post) => !isOver(post)) });
    return expired;
  }

  /** Changes the state and the file; leaves the state unchanged if the file can't be written. */
  #replace({
    used = this.#used,
    newestMs = this.#newestMs,
    pending,
  }: {
    readonly used?: readonly UsedCoin[];
    readonly newestMs?: bigint | null;
    readonly pending: readonly Pending[];
  }): void {
    const before = { used: this.#used, newestMs: this.#newestMs, pending: this.#pending };
    this.#used = used;
    this.#newestMs = newestMs;
    this.#pending = pending;
    try {
      this.#write();
    } catch (error) {
      this.#used = before.used;
      this.#newestMs = before.newestMs;
      this.#pending = before.pending;
      throw error;
    }
  }

  #write(): void {
    if (this.#path === undefined) return;
    const content = {
      newest: this.#newestMs === null ? null : `${this.#newestMs}`,
      used: this.#used.map(({ id, version, lastEpoch }) => ({
        coin: id,
        version: `${version}`,
        last_epoch: `${lastEpoch}`,
      })),
      pending: this.#pending.map(({ transaction, signature, url, timestampMs }) => ({
        transaction: toBase64(transaction),
        signature,
        url,
        timestamp_ms: `${timestampMs}`,
      })),
    };
    try {
      replaceFileDurably(this.#path, `${JSON.stringify(content)}\n`, 0o600);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new PosterFileError(
        `${this.#path} can't be written (${code}), so no transaction is sent: correct that, or name another file by --transactions`,
        { cause },
      );
    }
  }
}

/**
 * Reads digest, coin and expiration from a transaction's bytes. @throws TypeError if it is not a transaction
 * of the poster with this address
 */
export function describePost(post: SignedPost, sender: string): Pending {
  const { V1: data } = bcs.TransactionData.parse(post.transaction);
  const [payment, ...morePayments] = data.gasData.payment ?? [];
  const lastEpoch = data.expiration.Epoch;
  const isOfPoster = data.sender === sender && data.gasData.owner === sender;
  if (!isOfPoster || payment === undefined || morePayments.length > 0 || lastEpoch == null) {
    throw new TypeError('not a transaction of this poster');
  }
  return {
    ...post,
    digest: TransactionDataBuilder.getDigestFromBytes(post.transaction),
    coin: { id: payment.objectId, version: BigInt(payment.version) },
    lastEpoch: BigInt(lastEpoch),
  };
}

function createFileError(path: string, cause?: unknown): PosterFileError {
  return new PosterFileError(
    `${path} does not have the transactions of this poster, so the transactions in flight are not known: name the poster's own file by --transactions, or remove the file after two epochs (two days), when no transaction in it can be executed`,
    { cause },
  );
}

function read(path: string): Content {
  let text: string;
  try {
    text = readRegularFile(path).toString();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return EMPTY;
    throw new PosterFileError(`${path} can't be read: ${code}`, { cause });
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), TransactionsFile), text);
  if (!parsed.success) throw createFileError(path);
  return parsed.output;
}
