/** The integer instructions of Move bytecode. */
import type { Int } from './values.ts';

/** The bits of what a cast gives, by its instruction. */
export const CAST: Readonly<Record<number, number>> = {
  51: 8,
  52: 64,
  53: 128,
  75: 16,
  76: 32,
  77: 256,
};

/** Undefined if the result does not fit the type. */
export function calculated(
  code: number,
  { bits, value: left }: Int,
  right: bigint,
): bigint | boolean | undefined {
  switch (code) {
    case 0x16:
      return within(left + right, bits);
    case 0x17:
      return within(left - right, bits);
    case 0x18:
      return within(left * right, bits);
    case 0x19:
      return right === 0n ? undefined : left % right;
    case 0x1a:
      return right === 0n ? undefined : left / right;
    case 0x1b:
      return left | right;
    case 0x1c:
      return left & right;
    case 0x1d:
      return left ^ right;
    case 0x23:
      return left < right;
    case 0x24:
      return left > right;
    case 0x25:
      return left <= right;
    case 0x26:
      return left >= right;
    // Bits that are shifted out are lost.
    case 0x2f:
      return right >= bits ? undefined : BigInt.asUintN(bits, left << right);
    case 0x30:
      return right >= bits ? undefined : left >> right;
    default:
      throw new TypeError(`an instruction that no compiler writes any longer, ${code}`);
  }
}

function within(value: bigint, bits: number): bigint | undefined {
  return value >= 0n && value >> BigInt(bits) === 0n ? value : undefined;
}
