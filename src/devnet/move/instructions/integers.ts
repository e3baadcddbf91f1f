/** Instructions for integers: arithmetic, bits, order and casts. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { type Execute, failed, type Instructions } from '../frame.ts';
import { Int } from '../values.ts';

/** Computes a result. It is undefined if it does not fit the type. */
type Calculate = (left: bigint, right: bigint, bits: number) => bigint | undefined;

export const INTEGERS: Instructions = {
  [OPCODE.add]: calculated((left, right, bits) => within(left + right, bits)),
  [OPCODE.sub]: calculated((left, right, bits) => within(left - right, bits)),
  [OPCODE.mul]: calculated((left, right, bits) => within(left * right, bits)),
  [OPCODE.mod]: calculated((left, right) => (right === 0n ? undefined : left % right)),
  [OPCODE.div]: calculated((left, right) => (right === 0n ? undefined : left / right)),
  [OPCODE.bitOr]: calculated((left, right) => left | right),
  [OPCODE.bitAnd]: calculated((left, right) => left & right),
  [OPCODE.xor]: calculated((left, right) => left ^ right),
  // Bits that are shifted out are lost.
  [OPCODE.shl]: calculated((left, right, bits) =>
    right >= bits ? undefined : BigInt.asUintN(bits, left << right),
  ),
  [OPCODE.shr]: calculated((left, right, bits) => (right >= bits ? undefined : left >> right)),
  [OPCODE.lt]: compared((left, right) => left < right),
  [OPCODE.gt]: compared((left, right) => left > right),
  [OPCODE.le]: compared((left, right) => left <= right),
  [OPCODE.ge]: compared((left, right) => left >= right),
  [OPCODE.castU8]: castTo(8),
  [OPCODE.castU16]: castTo(16),
  [OPCODE.castU32]: castTo(32),
  [OPCODE.castU64]: castTo(64),
  [OPCODE.castU128]: castTo(128),
  [OPCODE.castU256]: castTo(256),
};

function calculated(calculate: Calculate): Execute {
  return (frame) => {
    const { stack } = frame;
    const right = stack.popInt();
    const left = stack.popInt();
    const value = calculate(left.value, right.value, left.bits);
    if (value === undefined) throw failed(frame, 'arithmetic');
    stack.push(new Int(left.bits, value));
  };
}

function within(value: bigint, bits: number): bigint | undefined {
  return value >= 0n && value >> BigInt(bits) === 0n ? value : undefined;
}

function compared(compare: (left: bigint, right: bigint) => boolean): Execute {
  return ({ stack }) => {
    const right = stack.popInt();
    stack.push(compare(stack.popInt().value, right.value));
  };
}

function castTo(bits: number): Execute {
  return (frame) => {
    const { stack } = frame;
    const { value } = stack.popInt();
    if (value >> BigInt(bits) !== 0n) throw failed(frame, 'a cast that loses bits');
    stack.push(new Int(bits, value));
  };
}
