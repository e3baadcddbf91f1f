/** The instructions of enums. */
import type { Variant } from '../../bytecode/module_code.ts';
import { OPCODE } from '../../bytecode/opcodes.ts';
import { createError, type Execute, type Frame, getEntry, type Instructions } from '../frame.ts';
import { Composite, composite, Reference, type Value } from '../values.ts';

/** Name of a module's table of variants, either of plain or of generic enums. */
type Table = 'variants' | 'variantInstances';

const unpackReference = unpackReferenceFrom('variants');
const unpackGenericReference = unpackReferenceFrom('variantInstances');

export const VARIANTS: Instructions = {
  [OPCODE.packVariant]: packFrom('variants'),
  [OPCODE.packVariantGeneric]: packFrom('variantInstances'),
  [OPCODE.unpackVariant]: unpackFrom('variants'),
  [OPCODE.unpackVariantGeneric]: unpackFrom('variantInstances'),
  [OPCODE.unpackVariantImmRef]: unpackReference,
  [OPCODE.unpackVariantMutRef]: unpackReference,
  [OPCODE.unpackVariantGenericImmRef]: unpackGenericReference,
  [OPCODE.unpackVariantGenericMutRef]: unpackGenericReference,
  [OPCODE.variantSwitch]: (frame, { operand }) => {
    const { tag } = frame.stack.popBorrowed();
    frame.next = getEntry(getEntry(frame.linked.code.jumps, operand), tag);
  },
};

function packFrom(table: Table): Execute {
  return ({ stack, linked }, { operand }) => {
    const { tag, fields } = getEntry(linked.module[table], operand);
    stack.push(new Composite(stack.popLast(fields), tag));
  };
}

function unpackFrom(table: Table): Execute {
  return (frame, { operand }) => {
    const { stack, linked } = frame;
    const variant = getEntry(linked.module[table], operand);
    stack.pushAll(readFields(stack.pop(), variant, frame));
  };
}

function unpackReferenceFrom(table: Table): Execute {
  return (frame, { operand }) => {
    const { stack, linked } = frame;
    const variant = getEntry(linked.module[table], operand);
    const items = readFields(stack.popReference().value, variant, frame);
    stack.pushAll(items.map((_, index) => new Reference(items, index)));
  };
}

function readFields(value: Value, { tag }: Variant, frame: Frame): Value[] {
  const variant = composite(value);
  if (variant.tag !== tag) throw createError(frame, 'the value has another variant');
  return variant.items;
}
