/** The integer instructions of Move bytecode. */
import { OPCODE } from '../bytecode/opcodes.ts';
import type { Int } from './values.ts';

/** The bits of what a cast gives, by its instruction. */
export const CAST: Readonly<Record<number, number>> = {
  [OPCODE.castU8]: 8,
  [OPCODE.castU64]: 64,
  [OPCODE.castU128]: 128,
  [OPCODE.castU16]: 16,
  [OPCODE.castU32]: 32,
  [OPCODE.castU256]: 256,
};

/** Undefined if the result does not fit the type. */
export function calculated(
  code: number,
  { bits, value: left }: Int,
  right: bigint,
): bigint | boolean | undefined {
  switch (code) {
    case OPCODE.add:
      return within(left + right, bits);
    case OPCODE.sub:
      return within(left - right, bits);
    case OPCODE.mul:
      return within(left * right, bits);
    case OPCODE.mod:
      return right === 0n ? undefined : left % right;
    case OPCODE.div:
      return right === 0n ? undefined : left / right;
    case OPCODE.bitOr:
      return left | right;
    case OPCODE.bitAnd:
      return left & right;
    case OPCODE.xor:
      return left ^ right;
    case OPCODE.lt:
      return left < right;
    case OPCODE.gt:
      return left > right;
    case OPCODE.le:
      return left <= right;
    case OPCODE.ge:
      return left >= right;
    // Bits that are shifted out are lost.
    case OPCODE.shl:
      return right >= bits ? undefined : BigInt.asUintN(bits, left << right);
    case OPCODE.shr:
      return right >= bits ? undefined : left >> right;
    default:
      throw new TypeError(`an instruction that no compiler writes any longer, ${code}`);
  }
}

function within(value: bigint, bits: number): bigint | undefined {
  return value >= 0n && value >> BigInt(bits) === 0n ? value : undefined;
}
