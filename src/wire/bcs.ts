/**
 * BCS types for what an enclave signs. They refuse values that `@mysten/bcs` would silently change: a lone
 * surrogate would become U+FFFD, 1.5 would become 1, undefined would become 0. Browser-safe.
 */
import { BcsType, bcs } from '@mysten/bcs';

const U64_MAX = 2n ** 64n - 1n;

/** The forms in which callers may give a u64. Parsing always returns a bigint. */
export type U64Input = bigint | number | string;

function toU64(value: U64Input): bigint {
  let exact: bigint | undefined;
  if (typeof value === 'bigint') exact = value;
  else if (typeof value === 'number' && Number.isSafeInteger(value)) exact = BigInt(value);
  else if (typeof value === 'string' && /^(0|[1-9][0-9]{0,19})$/.test(value)) exact = BigInt(value);
  if (exact === undefined || exact < 0n || exact > U64_MAX) {
    throw new TypeError(
      'a u64 must be a bigint, a safe integer or a decimal string, from 0 to 18446744073709551615 (2^64 - 1)',
    );
  }
  return exact;
}

/**
 * Move's `u64`, 8 bytes little-endian: a bigint in TypeScript. (The library's own divides by 256 for each byte, which
 * took a quarter of the time to serialize and parse an answer.)
 */
export const u64: BcsType<bigint, U64Input, 'u64'> = new BcsType({
  name: 'u64',
  read(reader) {
    const low = BigInt(reader.read32());
    return (BigInt(reader.read32()) << 32n) | low;
  },
  write(value, writer) {
    const exact = toU64(value);
    writer.write32(Number(exact & 0xffff_ffffn)).write32(Number(exact >> 32n));
  },
  serializedSize: () => 8,
  validate: toU64,
});

/** Move's `u8`: an integer from 0 to 255. */
export const u8 = bcs.u8({
  validate(value) {
    if (!Number.isInteger(value)) throw new TypeError('a u8 must be an integer from 0 to 255');
  },
});

/** Move's `String`: well-formed Unicode in UTF-8, prefixed with its length in ULEB128. */
export const text = bcs.string({
  validate(value) {
    if (!value.isWellFormed())
      throw new TypeError('a string must be well-formed Unicode (no lone surrogate)');
  },
});
