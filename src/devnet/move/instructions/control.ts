/** Instructions that decide which instruction of a function runs next. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { MoveAbort } from '../../failures.ts';
import { describeLocation, type Frame, type Instructions } from '../frame.ts';
import { parseTypeOnce } from '../types.ts';
import { toBytes } from '../values.ts';

export const CONTROL: Instructions = {
  [OPCODE.branch]: (frame, { operand }) => {
    frame.next = operand;
  },
  [OPCODE.brTrue]: (frame, { operand }) => {
    if (frame.stack.pop() === true) frame.next = operand;
  },
  [OPCODE.brFalse]: (frame, { operand }) => {
    if (frame.stack.pop() === false) frame.next = operand;
  },
  [OPCODE.nop]: () => undefined,
  [OPCODE.abort]: (frame) => {
    throw createAbort(frame, frame.stack.popInt().value);
  },
};

function createAbort({ linked, next, codec }: Frame, code: bigint): MoveAbort {
  return new MoveAbort(describeLocation(linked, next - 1), code, (index) => {
    const constant = linked.module.constants[index];
    if (constant === undefined || constant.type !== 'vector<u8>') return undefined;
    return Buffer.from(toBytes(codec.decode(constant.bytes, parseTypeOnce(constant.type)))).toString();
  });
}
