/** The instructions of references. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { type Execute, getEntry, type Instructions } from '../frame.ts';
import { copyValue, Reference } from '../values.ts';

const borrowField = createBorrowField('fields');
const borrowGenericField = createBorrowField('fieldInstances');

export const REFERENCES: Instructions = {
  [OPCODE.readRef]: ({ stack, charge }) => stack.push(copyValue(stack.popReference().value, charge)),
  [OPCODE.writeRef]: ({ stack }) => {
    const target = stack.popReference();
    target.value = stack.pop();
  },
  [OPCODE.freezeRef]: () => undefined,
  [OPCODE.mutBorrowField]: borrowField,
  [OPCODE.immBorrowField]: borrowField,
  [OPCODE.mutBorrowFieldGeneric]: borrowGenericField,
  [OPCODE.immBorrowFieldGeneric]: borrowGenericField,
};

function createBorrowField(table: 'fields' | 'fieldInstances'): Execute {
  return ({ stack, linked }, { operand }) => {
    const index = getEntry(linked.module[table], operand);
    stack.push(new Reference(stack.popBorrowed().items, index));
  };
}
