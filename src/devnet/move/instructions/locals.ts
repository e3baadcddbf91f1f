/** Instructions for local variables, and the instruction `pop`, which drops a value. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { type Execute, getEntry, type Instructions } from '../frame.ts';
import { copyValue, Reference } from '../values.ts';

const borrow: Execute = ({ stack, locals }, { operand }) => stack.push(new Reference(locals, operand));

export const LOCALS: Instructions = {
  [OPCODE.copyLoc]: ({ stack, locals, charge }, { operand }) =>
    stack.push(copyValue(getEntry(locals, operand), charge)),
  [OPCODE.moveLoc]: ({ stack, locals }, { operand }) => stack.push(getEntry(locals, operand)),
  [OPCODE.stLoc]: ({ stack, locals }, { operand }) => {
    locals[operand] = stack.pop();
  },
  [OPCODE.mutBorrowLoc]: borrow,
  [OPCODE.immBorrowLoc]: borrow,
  [OPCODE.pop]: ({ stack }) => {
    stack.pop();
  },
};
