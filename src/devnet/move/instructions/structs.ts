/** Instructions that pack and unpack structs. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { type Execute, getEntry, type Instructions } from '../frame.ts';
import { Composite } from '../values.ts';

const unpack: Execute = ({ stack }) => stack.pushAll(stack.popComposite().items);

export const STRUCTS: Instructions = {
  [OPCODE.pack]: packFrom('structs'),
  [OPCODE.packGeneric]: packFrom('structInstances'),
  [OPCODE.unpack]: unpack,
  [OPCODE.unpackGeneric]: unpack,
};

function packFrom(table: 'structs' | 'structInstances'): Execute {
  return ({ stack, linked }, { operand }) =>
    stack.push(new Composite(stack.popLast(getEntry(linked.module[table], operand))));
}
