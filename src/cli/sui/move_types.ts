/**
 * Finds the BCS type of a Move type, which is named as `module_bytecode.ts` writes it. The BCS types refuse
 * values that BCS would silently change.
 */
import { type BcsType, bcs } from '@mysten/sui/bcs';
import { normalizeStructTag } from '@mysten/sui/utils';
import { text, u8, u64 } from 'sui-enclave/wire/bcs';

const STRING = normalizeStructTag('0x1::string::String');
const ASCII = normalizeStructTag('0x1::ascii::String');
const ID = normalizeStructTag('0x2::object::ID');
const OPTION = normalizeStructTag('0x1::option::Option<u8>').replace(/<u8>$/, '');

type AnyType = BcsType<unknown, never>;

/**
 * An integer of JSON: a safe integer, or a decimal string. Parsing returns a number up to 32 bits, else a
 * string.
 */
function integer(bits: 16 | 32 | 128 | 256): AnyType {
  const type = { 16: bcs.u16(), 32: bcs.u32(), 128: bcs.u128(), 256: bcs.u256() }[bits] as BcsType<
    unknown,
    unknown
  >;
  return type.transform({
    name: `u${bits}`,
    input(value: unknown) {
      const isExact =
        Number.isSafeInteger(value) || (typeof value === 'string' && /^(0|[1-9][0-9]{0,77})$/.test(value));
      const exact = isExact ? BigInt(value as number | string) : -1n;
      if (exact < 0n || exact >= 2n ** BigInt(bits)) throw new TypeError(`it must be a u${bits}`);
      return bits < 64 ? Number(exact) : exact;
    },
    output: (value) => value,
  }) as unknown as AnyType;
}

const bool = bcs.bool().transform({
  input(value: unknown) {
    if (typeof value !== 'boolean') throw new TypeError('it must be true or false');
    return value;
  },
  output: (value) => value,
});

/**
 * Bytes, given in JSON as a string in UTF-8 or an array of numbers, since the server's type may be either.
 */
const bytes = bcs.byteVector().transform({
  input(value: unknown) {
    if (typeof value === 'string' && value.isWellFormed()) return new TextEncoder().encode(value);
    const isBytes =
      Array.isArray(value) && value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256);
    if (!isBytes && !(value instanceof Uint8Array))
      throw new TypeError('it must be a string or an array of bytes');
    return Uint8Array.from(value as Iterable<number>);
  },
  output: (value) => value,
});

const PLAIN: Readonly<Record<string, unknown>> = {
  u8,
  u16: integer(16),
  u32: integer(32),
  u64,
  u128: integer(128),
  u256: integer(256),
  bool,
  address: bcs.Address,
  [STRING]: text,
  [ASCII]: text,
  [ID]: bcs.Address,
  'vector<u8>': bytes,
};

/**
 * Returns the BCS type; undefined for an object or a struct of a package, which can't be values in a
 * transaction.
 */
export function valueType(type: string): AnyType | undefined {
  if (Object.hasOwn(PLAIN, type)) return PLAIN[type] as AnyType;
  const [, outer = '', inner = ''] = /^([^<]+)<(.*)>$/.exec(type) ?? [];
  if (outer !== 'vector' && outer !== OPTION) return undefined;
  const elementType = valueType(inner);
  if (elementType === undefined) return undefined;
  return (outer === 'vector' ? bcs.vector(elementType) : bcs.option(elementType)) as unknown as AnyType;
}

/** Splits a list of types that are separated by commas. */
export function splitTypes(list: string): string[] {
  const types: string[] = [];
  let depth = 0;
  let from = 0;
  for (const [index, character] of [...list].entries()) {
    if (character === '<') depth += 1;
    if (character === '>') depth -= 1;
    if (character !== ',' || depth > 0) continue;
    types.push(list.slice(from, index));
    from = index + 1;
  }
  return list === '' ? [] : [...types, list.slice(from)];
}
