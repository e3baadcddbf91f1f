/**
 * BCS types for what an enclave signs. They refuse values that `@mysten/bcs` would silently change: a lone
 * surrogate would become U+FFFD, 1.5 would become 1, undefined would become 0. `move.ts` has the other types.
 * Browser-safe.
 */
import { BcsType, bcs } from '@mysten/bcs';

/** The properties of a type in Move. Types of `@mysten/bcs` do not have them. */
export interface InMove {
  /** The type as Move's sources write it: `u64`, `vector<Option<address>>`, or the name of a struct. */
  readonly move: string;
  /** The type of the items of a vector or an Option. */
  readonly item?: MoveType;
  /** The fields of a struct, in the order of their bytes. */
  readonly fields?: readonly Field[];
}

/** A BCS type that this folder defines. */
// biome-ignore lint/suspicious/noExplicitAny: of values of any type, as the fields of BcsStruct are.
export type MoveType = BcsType<any> & InMove;

/** A field of a struct, with the data that generators of code and forms need. */
export interface Field {
  readonly name: string;
  readonly type: MoveType;
  /** The field's type as Move's sources write it. */
  readonly move: string;
}

export function inMove<Type extends object>(move: string, type: Type): Type & InMove {
  return Object.assign(type, { move });
}

/** Checks that a type is from this folder, in case the compiler did not. @throws TypeError */
export function requireMoveType(type: Partial<MoveType> | undefined, label: string): void {
  if (typeof type?.move === 'string' && typeof type.serialize === 'function') return;
  throw new TypeError(
    `${label} must be of a type such as u64, text or vector(u64): a type of @mysten/bcs does not name its type in Move`,
  );
}

/** The forms in which callers may pass a u64, a u128 or a u256. Parsing always returns a bigint. */
export type U64Input = bigint | number | string;

/** Matches a decimal integer. A u256 has at most 78 digits. */
const DECIMAL = /^(0|[1-9][0-9]{0,77})$/;

/**
 * Returns a function that converts an unsigned integer of this number of bits to a bigint. It throws a
 * TypeError for any other value.
 */
export function createConverter(bits: number): (value: U64Input) => bigint {
  const max = 2n ** BigInt(bits) - 1n;
  return (value) => {
    let integer: bigint | undefined;
    if (typeof value === 'bigint') integer = value;
    else if (typeof value === 'number' && Number.isSafeInteger(value)) integer = BigInt(value);
    else if (typeof value === 'string' && DECIMAL.test(value)) integer = BigInt(value);
    if (integer === undefined || integer < 0n || integer > max) {
      throw new TypeError(
        `a u${bits} must be a bigint, a safe integer or a decimal string, from 0 to ${max} (2^${bits} - 1)`,
      );
    }
    return integer;
  };
}

const toU64 = createConverter(64);

/**
 * Move's `u64`, 8 bytes little-endian: a bigint in TypeScript. (The u64 of `@mysten/bcs` divides by 256 for
 * each byte, which took a quarter of the time to serialize and parse an answer.)
 */
export const u64: BcsType<bigint, U64Input, 'u64'> & InMove = inMove(
  'u64',
  new BcsType({
    name: 'u64',
    read(reader) {
      const low = BigInt(reader.read32());
      return (BigInt(reader.read32()) << 32n) | low;
    },
    write(value, writer) {
      const integer = toU64(value);
      writer.write32(Number(integer & 0xffff_ffffn)).write32(Number(integer >> 32n));
    },
    serializedSize: () => 8,
    validate: toU64,
  }),
);

/** Options of an integer that is a number in TypeScript. `@mysten/bcs` checks the range. */
export const wholeNumber = (bits: 8 | 16 | 32) => ({
  validate(value: number) {
    if (!Number.isInteger(value)) {
      throw new TypeError(`a u${bits} must be an integer from 0 to ${2 ** bits - 1}`);
    }
  },
});

/** Move's `u8`: an integer from 0 to 255. */
export const u8 = inMove('u8', bcs.u8(wholeNumber(8)));

/** Move's `String`: well-formed Unicode in UTF-8, prefixed with its length in ULEB128. */
export const text = inMove(
  'String',
  bcs.string({
    validate(value) {
      if (!value.isWellFormed())
        throw new TypeError('a string must be well-formed Unicode (no lone surrogate)');
    },
  }),
);
