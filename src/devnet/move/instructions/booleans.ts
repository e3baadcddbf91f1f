/** Instructions for booleans, and for comparing any values. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import type { Frame, Instructions } from '../frame.ts';
import { areEqual } from '../values.ts';

export const BOOLEANS: Instructions = {
  [OPCODE.not]: ({ stack }) => stack.push(stack.pop() !== true),
  // Both operands are popped from the stack: these instructions do not short-circuit.
  [OPCODE.or]: ({ stack }) => {
    const [right, left] = [stack.pop(), stack.pop()];
    stack.push(left === true || right === true);
  },
  [OPCODE.and]: ({ stack }) => {
    const [right, left] = [stack.pop(), stack.pop()];
    stack.push(left === true && right === true);
  },
  [OPCODE.eq]: (frame) => frame.stack.push(popEqual(frame)),
  [OPCODE.neq]: (frame) => frame.stack.push(!popEqual(frame)),
};

/** Pops two values, and returns whether they are equal. */
function popEqual({ stack, charge }: Frame): boolean {
  const right = stack.pop();
  return areEqual(stack.pop(), right, charge);
}
