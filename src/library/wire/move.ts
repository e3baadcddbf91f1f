/**
 * The types of Move that `bcs.ts` lacks. They also refuse values that they can't hold exactly. Browser-safe.
 */
import { type BcsType, bcs, fromHex, toHex } from '@mysten/bcs';
import { createConverter, type InMove, inMove, requireMoveType, type U64Input, wholeNumber } from './bcs.ts';

/** The type `bool` of Move. */
export const bool = inMove('bool', bcs.bool());

/** Move's `u16`: an integer from 0 to 65,535. */
export const u16 = inMove('u16', bcs.u16(wholeNumber(16)));

/** Move's `u32`: an integer from 0 to 4,294,967,295. */
export const u32 = inMove('u32', bcs.u32(wholeNumber(32)));

const toU128 = createConverter(128);

/** Move's `u128`: a bigint in TypeScript. */
export const u128: BcsType<bigint, U64Input, 'u128'> & InMove = inMove(
  'u128',
  bcs.u128().transform({ validate: toU128, input: toU128, output: BigInt }),
);

const toU256 = createConverter(256);

/** Move's `u256`: a bigint in TypeScript. */
export const u256: BcsType<bigint, U64Input, 'u256'> & InMove = inMove(
  'u256',
  bcs.u256().transform({ validate: toU256, input: toU256, output: BigInt }),
);

/**
 * Move's `address`, 32 bytes: `0x` and 64 hexadecimal digits in lower case, as Sui's libraries normalize it.
 */
export const address = inMove(
  'address',
  bcs.bytes(32).transform({
    name: 'address',
    validate(value: string) {
      if (typeof value !== 'string' || !/^0x[0-9a-f]{64}$/.test(value)) {
        throw new TypeError('an address must be 0x and 64 hexadecimal digits in lower case');
      }
    },
    input: fromHex,
    output: (value) => `0x${toHex(value)}`,
  }),
);

/** Move's `vector<u8>`: a Uint8Array, or from JSON an array of integers from 0 to 255. */
export const bytes = inMove(
  'vector<u8>',
  bcs.byteVector({
    validate(value) {
      if (value instanceof Uint8Array) return;
      if (!Array.isArray(value) || !Uint8Array.from(value).every((byte, index) => byte === value[index])) {
        throw new TypeError('bytes must be a Uint8Array or an array of integers from 0 to 255');
      }
    },
  }),
);

/** Move's `vector<T>`: an array in TypeScript. For a `vector<u8>`, `bytes` is more compact. */
export function vector<T, Input>(element: BcsType<T, Input> & InMove) {
  requireMoveType(element, 'an item of a vector');
  const validate = (value: unknown) => {
    if (!Array.isArray(value)) throw new TypeError('a vector must be an array');
  };
  return Object.assign(inMove(`vector<${element.move}>`, bcs.vector(element, { validate })), {
    item: element,
  });
}

/** Move's `Option<T>`: a value or null. */
export function option<T, Input>(content: BcsType<T, Input> & InMove) {
  requireMoveType(content, 'the value of an Option');
  if (content.move.startsWith('Option<')) {
    throw new TypeError(`Option<${content.move}> has two values that would both be null in TypeScript`);
  }
  return Object.assign(inMove(`Option<${content.move}>`, bcs.option(content)), { item: content });
}
