/** The instructions of vectors. */
import { OPCODE } from '../../bytecode/opcodes.ts';
import { createError, type Execute, type Instructions } from '../frame.ts';
import { Composite, Reference, u64 } from '../values.ts';

const borrow: Execute = (frame) => {
  const { stack } = frame;
  const index = Number(stack.popInt().value);
  const { items } = stack.popBorrowed();
  if (index >= items.length) throw createError(frame, 'an index outside of the vector');
  stack.push(new Reference(items, index));
};

const pack: Execute = ({ stack, charge }, { value }) => {
  charge(Number(value));
  stack.push(new Composite(stack.popLast(Number(value))));
};

const unpack: Execute = (frame, { value }) => {
  const { items } = frame.stack.popComposite();
  if (BigInt(items.length) !== value) throw createError(frame, 'a vector of another length');
  frame.stack.pushAll(items);
};

const pushBack: Execute = ({ stack }) => {
  const element = stack.pop();
  stack.popBorrowed().items.push(element);
};

const popBack: Execute = (frame) => {
  const element = frame.stack.popBorrowed().items.pop();
  if (element === undefined) throw createError(frame, 'the vector is empty');
  frame.stack.push(element);
};

const swap: Execute = (frame) => {
  const { stack } = frame;
  const [firstIndex, secondIndex] = [Number(stack.popInt().value), Number(stack.popInt().value)];
  const { items } = stack.popBorrowed();
  const [first, second] = [items[firstIndex], items[secondIndex]];
  if (first === undefined || second === undefined) {
    throw createError(frame, 'an index outside of the vector');
  }
  items[firstIndex] = second;
  items[secondIndex] = first;
};

export const VECTORS: Instructions = {
  [OPCODE.vecPack]: pack,
  [OPCODE.vecUnpack]: unpack,
  [OPCODE.vecLen]: ({ stack }) => stack.push(u64(stack.popBorrowed().items.length)),
  [OPCODE.vecImmBorrow]: borrow,
  [OPCODE.vecMutBorrow]: borrow,
  [OPCODE.vecPushBack]: pushBack,
  [OPCODE.vecPopBack]: popBack,
  [OPCODE.vecSwap]: swap,
};
