/** Signed types in JSON, for forms, readers of bytes and generators of code. Browser-safe. */
import type { MoveType } from './bcs.ts';
import type { DeclaredStruct } from './intent.ts';

/** A field of a struct. */
export interface SchemaField {
  /** Name of the field in the struct. */
  readonly name: string;
  /** The type as Move's sources write it: `u64`, `vector<Option<address>>`, or the name of a struct. */
  readonly type: string;
  /** The field's size in bytes, if all values have the same size. */
  readonly width?: number;
  /** The fields of the struct that the type is or contains, in the order of their bytes. */
  readonly fields?: readonly SchemaField[];
}

/** A struct of a signed type. */
export interface SchemaStruct {
  /** Name of the struct in Move. */
  readonly name: string;
  /** The fields in the order of their bytes. */
  readonly fields: readonly SchemaField[];
}

/** A type that an enclave signs. */
export interface SchemaType extends SchemaStruct {
  /** First byte of the signed message, 0 to 255. */
  readonly intent: number;
}

/** Sizes in bytes of the types whose values all have the same size. */
const WIDTHS = new Map([
  ['bool', 1],
  ['u8', 1],
  ['u16', 2],
  ['u32', 4],
  ['u64', 8],
  ['u128', 16],
  ['u256', 32],
  ['address', 32],
]);
const TEXT = 'String';

/** A type without its vectors and Options. */
export interface Unwrapped {
  /** The types around the leaf, the outermost first. */
  readonly wrappers: readonly ('vector' | 'Option')[];
  /** A type of Move, `String`, or the name of a struct. */
  readonly leaf: string;
}

/** Splits a type such as `vector<Option<u64>>`. The caller must check whether the leaf exists. */
export function unwrapType(type: string): Unwrapped {
  const wrappers: ('vector' | 'Option')[] = [];
  // A stranger may have written the type, with any number of wrappers, so that it is not copied for each.
  let [from, to] = [0, type.length];
  for (;;) {
    const wrapper = (['vector', 'Option'] as const).find((name) => type.startsWith(`${name}<`, from));
    const innerFrom = from + (wrapper?.length ?? 0) + 1;
    if (wrapper === undefined || type[to - 1] !== '>' || innerFrom >= to) {
      return { wrappers, leaf: type.slice(from, to) };
    }
    wrappers.push(wrapper);
    [from, to] = [innerFrom, to - 1];
  }
}

/** Returns whether the leaf is a type of Move or `String`, and not the name of a struct. */
export function isPlainType(leaf: string): boolean {
  return leaf === TEXT || WIDTHS.has(leaf);
}

/**
 * Returns the size in bytes of a type, or undefined if the size depends on the value.
 *
 * @param fields the struct's fields, if the type is a struct
 */
export function computeWidth(type: string, fields: readonly SchemaField[] | undefined): number | undefined {
  if (fields === undefined) return WIDTHS.get(type);
  if (unwrapType(type).wrappers.length > 0) return undefined;
  let sum = 0;
  for (const field of fields) {
    const width = computeWidth(field.type, field.fields);
    if (width === undefined) return undefined;
    sum += width;
  }
  return sum;
}

/** Returns a signed type in the form that an application's schema uses. */
export function toSchemaType({ intent, payload }: DeclaredStruct): SchemaType {
  return { intent, name: payload.name, fields: payload.fields.map(toSchemaField) };
}

function toSchemaField({ name, type, move }: DeclaredStruct['payload']['fields'][number]): SchemaField {
  let leaf: MoveType = type;
  while (leaf.item !== undefined) leaf = leaf.item;
  const fields = leaf.fields?.map(toSchemaField);
  const width = computeWidth(move, fields);
  return { name, type: move, ...(width !== undefined && { width }), ...(fields && { fields }) };
}
