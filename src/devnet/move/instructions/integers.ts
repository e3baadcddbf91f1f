/** Instructions for integers: arithmetic, bits, order and casts. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { createError, type Execute, type Instructions } from '../frame.ts';
import { Int } from '../values.ts';

/** Computes the value of an operation. Returns undefined if it does not exist or does not fit the type. */
type Calculate = (left: bigint, right: bigint, bits: number) => bigint | undefined;

export const INTEGERS: Instructions = {
  [OPCODE.add]: createCalculation((left, right, bits) => checkRange(left + right, bits)),
  [OPCODE.sub]: createCalculation((left, right, bits) => checkRange(left - right, bits)),
  [OPCODE.mul]: createCalculation((left, right, bits) => checkRange(left * right, bits)),
  [OPCODE.mod]: createCalculation((left, right) => (right === 0n ? undefined : left % right)),
  [OPCODE.div]: createCalculation((left, right) => (right === 0n ? undefined : left / right)),
  [OPCODE.bitOr]: createCalculation((left, right) => left | right),
  [OPCODE.bitAnd]: createCalculation((left, right) => left & right),
  [OPCODE.xor]: createCalculation((left, right) => left ^ right),
  // Bits that are shifted out are lost.
  [OPCODE.shl]: createCalculation((left, right, bits) =>
    right >= bits ? undefined : BigInt.asUintN(bits, left << right),
  ),
  [OPCODE.shr]: createCalculation((left, right, bits) => (right >= bits ? undefined : left >> right)),
  [OPCODE.lt]: createComparison((left, right) => left < right),
  [OPCODE.gt]: createComparison((left, right) => left > right),
  [OPCODE.le]: createComparison((left, right) => left <= right),
  [OPCODE.ge]: createComparison((left, right) => left >= right),
  [OPCODE.castU8]: castTo(8),
  [OPCODE.castU16]: castTo(16),
  [OPCODE.castU32]: castTo(32),
  [OPCODE.castU64]: castTo(64),
  [OPCODE.castU128]: castTo(128),
  [OPCODE.castU256]: castTo(256),
};

function createCalculation(calculate: Calculate): Execute {
  return (frame) => {
    const { stack } = frame;
    const right = stack.popInt();
    const left = stack.popInt();
    const value = calculate(left.value, right.value, left.bits);
    if (value === undefined) throw createError(frame, 'an arithmetic error');
    stack.push(new Int(left.bits, value));
  };
}

function checkRange(value: bigint, bits: number): bigint | undefined {
  return value >= 0n && value >> BigInt(bits) === 0n ? value : undefined;
}

function createComparison(compare: (left: bigint, right: bigint) => boolean): Execute {
  return ({ stack }) => {
    const right = stack.popInt();
    stack.push(compare(stack.popInt().value, right.value));
  };
}

function castTo(bits: number): Execute {
  return (frame) => {
    const { stack } = frame;
    const { value } = stack.popInt();
    if (value >> BigInt(bits) !== 0n) throw createError(frame, 'a cast that loses bits');
    stack.push(new Int(bits, value));
  };
}
