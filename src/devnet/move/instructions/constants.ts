/** The instructions that load constants. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { type Execute, getEntry, type Instructions } from '../frame.ts';
import { parseTypeOnce } from '../types.ts';
import { Int } from '../values.ts';

export const CONSTANTS: Instructions = {
  [OPCODE.ldU8]: loadInteger(8),
  [OPCODE.ldU16]: loadInteger(16),
  [OPCODE.ldU32]: loadInteger(32),
  [OPCODE.ldU64]: loadInteger(64),
  [OPCODE.ldU128]: loadInteger(128),
  [OPCODE.ldU256]: loadInteger(256),
  [OPCODE.ldTrue]: ({ stack }) => stack.push(true),
  [OPCODE.ldFalse]: ({ stack }) => stack.push(false),
  [OPCODE.ldConst]: ({ stack, linked, codec, charge }, { operand }) => {
    const { type, bytes } = getEntry(linked.module.constants, operand);
    charge(bytes.length);
    stack.push(codec.decode(bytes, parseTypeOnce(type)));
  },
};

function loadInteger(bits: number): Execute {
  return ({ stack }, { value }) => stack.push(new Int(bits, value));
}
