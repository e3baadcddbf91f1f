/** Values in BCS as Move expressions, with functions that make them: only a datatype's own module can. */
import { bytesToHex } from '@noble/hashes/utils.js';
import {
  ABILITY,
  type Datatypes,
  type Declared,
  type Field,
  format,
  instantiate,
  layoutOf,
  type MoveType,
  type Struct,
  typeArguments,
} from './types.ts';

export const bytes = (value: Uint8Array) => `x"${bytesToHex(value)}"`;

/** Its module's function that makes a value of the type, or of a variant of it. */
const makerOf = (name: string, variant?: string) => `model_make_${name}${variant ? `_${variant}` : ''}`;

/** A struct without fields has one in its bytecode. */
const isEmpty = (fields: readonly Field[]) => fields.length === 1 && fields[0]?.name === 'dummy_field';
const isPositional = (fields: readonly Field[]) => fields[0]?.name === 'pos0';
/** Modules whose datatypes need none, or have theirs in `move_framework/model`. */
const BY_HAND = /^0x0*2::(?:object|tx_context|dynamic_field|test_scenario)$/;
/** Only `init` can have one. */
const isWitness = ({ module, name, abilities, typeParameters }: Declared) =>
  module.endsWith(`::${name.toLowerCase()}`) &&
  name === name.toUpperCase() &&
  abilities === ABILITY.drop &&
  typeParameters === '';
const isUid = (type: MoveType) =>
  type.kind === 'struct' && type.name === 'UID' && type.module === 'object' && /^0x0*2$/.test(type.address);

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(content: Uint8Array) {
    this.#bytes = content;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new RangeError('the value ends early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Little-endian. */
  integer(size: number): bigint {
    return BigInt(`0x${bytesToHex(this.take(size).toReversed())}`);
  }

  /** ULEB128. */
  length(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = Number(this.integer(1));
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a length is too large');
  }
}

/**
 * @throws RangeError for bytes that are no such value, TypeError for a type that has no values here
 */
export function literalOf(content: Uint8Array, type: MoveType, datatypes: Datatypes): string {
  const reader = new Reader(content);
  const literal = read(reader, type, datatypes);
  if (!reader.isAtEnd) throw new RangeError(`bytes after a value of ${format(type)}`);
  return literal;
}

function read(reader: Reader, type: MoveType, datatypes: Datatypes): string {
  if (type.kind === 'primitive') return primitive(reader, type.name);
  if (type.kind === 'vector') {
    const length = reader.length();
    if (type.of.kind === 'primitive' && type.of.name === 'u8') return bytes(reader.take(length));
    const items = Array.from({ length }, () => read(reader, type.of, datatypes));
    return `vector<${format(type.of)}>[${items.join(', ')}]`;
  }
  if (type.kind !== 'struct') throw new TypeError(`no value of ${format(type)}`);
  if (isUid(type)) return `0x2::object::model_uid(${primitive(reader, 'address')})`;
  const layout = datatypes.layoutOf(type);
  if (layout.kind === 'struct') return made(reader, type, layout.fields, makerOf(type.name), datatypes);
  const variant = layout.variants[reader.length()];
  if (variant === undefined) throw new RangeError(`no such variant of ${format(type)}`);
  return made(reader, type, variant.fields, makerOf(type.name, variant.name), datatypes);
}

function made(
  reader: Reader,
  { address, module, args, ...rest }: Struct,
  fields: readonly Field[],
  maker: string,
  datatypes: Datatypes,
): string {
  const isObject = (datatypes.of({ address, module, args, ...rest }).abilities & ABILITY.key) !== 0;
  const values = fields.map(({ type }, index) =>
    isObject && index === 0 ? primitive(reader, 'address') : read(reader, instantiate(type, args), datatypes),
  );
  const given = isEmpty(fields) ? [] : values;
  return `${address}::${module}::${maker}${typeArguments(args)}(${given.join(', ')})`;
}

function primitive(reader: Reader, name: string): string {
  switch (name) {
    case 'bool':
      return String(reader.integer(1) === 1n);
    case 'u8':
      return `${reader.integer(1)}u8`;
    case 'u16':
      return `${reader.integer(2)}u16`;
    case 'u32':
      return `${reader.integer(4)}u32`;
    case 'u64':
      return `${reader.integer(8)}u64`;
    case 'u128':
      return `${reader.integer(16)}u128`;
    case 'u256':
      return `${reader.integer(32)}u256`;
    case 'address':
      return `@0x${bytesToHex(reader.take(32))}`;
    default:
      throw new TypeError(`no value of ${name}`);
  }
}

/**
 * Source that adds to each module functions that make its datatypes.
 *
 * @param isWrittenWithParentheses whether a struct without fields is declared as `Name()`
 * @param more functions to add too, by module
 */
export function makers(
  datatypes: Datatypes,
  isWrittenWithParentheses: (module: string, name: string) => boolean,
  more: ReadonlyMap<string, readonly string[]>,
): string {
  const byModule = Map.groupBy(datatypes.all.values(), ({ module }) => module);
  return [...new Set([...byModule.keys(), ...more.keys()])]
    .filter((module) => !BY_HAND.test(module))
    .map((module) => {
      const made = (byModule.get(module) ?? []).flatMap((datatype) =>
        makersOf(datatype, isWrittenWithParentheses),
      );
      const functions = [...made, ...(more.get(module) ?? [])];
      if (functions.length === 0) return '';
      return `#[test_only]\nextend module ${module} {\n${functions.join('\n')}\n}\n`;
    })
    .join('\n');
}

function makersOf(
  datatype: Declared,
  isWrittenWithParentheses: (module: string, name: string) => boolean,
): string[] {
  const { module, name, abilities } = datatype;
  const isObject = (abilities & ABILITY.key) !== 0;
  const layout = layoutOf(datatype);
  if (isWitness(datatype)) return [];
  const { declared, used } = typeParameters(constraintsOf(datatype));
  const maker = (fields: readonly Field[], variant?: string) => {
    const kept = isEmpty(fields) ? [] : fields;
    const given = kept.map(({ type }, index) =>
      isObject && index === 0 ? 'f0: address' : `f${index}: ${format(type)}`,
    );
    const values = kept.map((_, index) =>
      isObject && index === 0 ? '0x2::test_scenario::new_object(f0)' : `f${index}`,
    );
    const head = `public fun ${makerOf(name, variant)}${declared}(${given.join(', ')}): ${name}${used}`;
    const made = `${name}${variant === undefined ? '' : `::${variant}`}`;
    if (kept.length === 0 && variant !== undefined) return `    ${head} { ${made} }`;
    const inParentheses = kept.length > 0 ? isPositional(kept) : isWrittenWithParentheses(module, name);
    const body = inParentheses
      ? `(${values.join(', ')})`
      : ` { ${kept.map((field, index) => `${field.name}: ${values[index]}`).join(', ')} }`;
    return `    ${head} { ${made}${body} }`;
  };
  if (layout.kind === 'struct') return [maker(layout.fields)];
  return layout.variants.map((variant) => maker(variant.fields, variant.name));
}

function constraintsOf({ typeParameters: text }: Declared): number[] {
  return text === '' ? [] : text.split(',').map((index) => Number.parseInt(index, 10));
}

/**
 * Type parameters as Move source: declared with the abilities that they require, and used.
 *
 * @param constraints bits of abilities
 */
export function typeParameters(constraints: readonly number[]): { declared: string; used: string } {
  if (constraints.length === 0) return { declared: '', used: '' };
  const parameters = constraints.map((bits, index) => {
    const required = Object.entries(ABILITY).flatMap(([name, bit]) => ((bits & bit) !== 0 ? [name] : []));
    return `T${index}${required.length === 0 ? '' : `: ${required.join(' + ')}`}`;
  });
  return {
    declared: `<${parameters.join(', ')}>`,
    used: `<${parameters.map((_, index) => `T${index}`).join(', ')}>`,
  };
}
