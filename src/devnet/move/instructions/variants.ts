/** The instructions of enums. */
import type { Variant } from '../../bytecode/module_code.ts';
import { OPCODE } from '../../bytecode/opcodes.ts';
import { at, type Execute, type Frame, failed, type Instructions } from '../frame.ts';
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
    frame.next = at(at(frame.linked.code.jumps, operand), tag);
  },
};

function packFrom(table: Table): Execute {
  return ({ stack, linked }, { operand }) => {
    const { tag, fields } = at(linked.module[table], operand);
    stack.push(new Composite(stack.popLast(fields), tag));
  };
}

function unpackFrom(table: Table): Execute {
  return (frame, { operand }) => {
    const { stack, linked } = frame;
    const variant = at(linked.module[table], operand);
    stack.pushAll(readItems(stack.pop(), variant, frame));
  };
}

function unpackReferenceFrom(table: Table): Execute {
  return (frame, { operand }) => {
    const { stack, linked } = frame;
    const variant = at(linked.module[table], operand);
    const items = readItems(stack.popReference().value, variant, frame);
    stack.pushAll(items.map((_, index) => new Reference(items, index)));
  };
}

function readItems(value: Value, { tag }: Variant, frame: Frame): Value[] {
  const variant = composite(value);
  if (variant.tag !== tag) throw failed(frame, 'another variant');
  return variant.items;
}
