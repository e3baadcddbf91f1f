/** Represents Move values for the machine, and encodes them in BCS. */
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { type Datatypes, format, instantiate, type Layout, type MoveType, type Struct } from './types.ts';

export type Value = boolean | Int | Address | Composite | Reference;

/** Text of `0x` and 64 hexadecimal digits. */
export type Address = string;

export class Int {
  readonly bits: number;
  readonly value: bigint;

  constructor(bits: number, value: bigint) {
    this.bits = bits;
    this.value = value;
  }
}

/** Fields of a struct or of a variant, or elements of a vector. */
export class Composite {
  readonly items: Value[];
  /** Tag of an enum's variant; 0 for a struct. */
  readonly tag: number;

  constructor(items: Value[], tag = 0) {
    this.items = items;
    this.tag = tag;
  }
}

/** A reference to a local variable, a field or an element. */
export class Reference {
  readonly items: Value[];
  readonly index: number;

  constructor(items: Value[], index: number) {
    this.items = items;
    this.index = index;
  }

  get value(): Value {
    const value = this.items[this.index];
    if (value === undefined) throw new TypeError('the reference points to nothing');
    return value;
  }

  set value(value: Value) {
    this.items[this.index] = value;
  }
}

const BITS: Readonly<Record<string, number>> = { u8: 8, u16: 16, u32: 32, u64: 64, u128: 128, u256: 256 };
const BYTES = Array.from({ length: 256 }, (_, value) => new Int(8, BigInt(value)));
const ADDRESS_BYTES = 32;

export const u64 = (value: bigint | number) => new Int(64, BigInt(value));

export function createVector(bytes: Uint8Array): Composite {
  return new Composite(Array.from(bytes, (byte) => BYTES[byte] as Int));
}

/** Returns the bytes of a `vector<u8>`. */
export function toBytes(value: Value): Uint8Array {
  return Uint8Array.from(composite(value).items, (element) => Number(int(element).value));
}

export function int(value: Value | undefined): Int {
  if (value instanceof Int) return value;
  throw new TypeError('the value is not an integer');
}

export function composite(value: Value | undefined): Composite {
  if (value instanceof Composite) return value;
  throw new TypeError('the value is neither a struct nor a vector');
}

export function reference(value: Value | undefined): Reference {
  if (value instanceof Reference) return value;
  throw new TypeError('the value is not a reference');
}

export function address(value: Value | undefined): Address {
  if (typeof value === 'string') return value;
  throw new TypeError('the value is not an address');
}

/** Returns the address in an `ID`, in a `UID`, or in a struct that begins with a `UID`. */
export function idOf(value: Value | undefined): Address {
  return typeof value === 'string' ? value : idOf(composite(value).items[0]);
}

/** Copies a value. @param charge called with the number of values that are copied */
export function copyValue(value: Value, charge: (count: number) => void): Value {
  if (!(value instanceof Composite)) return value;
  charge(1 + value.items.length);
  return new Composite(
    value.items.map((element) => copyValue(element, charge)),
    value.tag,
  );
}

/** Returns whether two values are equal. @param charge called with the number of values that are compared */
export function areEqual(left: Value, right: Value, charge: (count: number) => void): boolean {
  if (left instanceof Reference && right instanceof Reference)
    return areEqual(left.value, right.value, charge);
  if (left instanceof Int && right instanceof Int) return left.value === right.value;
  if (!(left instanceof Composite && right instanceof Composite)) return left === right;
  charge(1 + left.items.length);
  return (
    left.tag === right.tag &&
    left.items.length === right.items.length &&
    left.items.every((element, index) => areEqual(element, right.items[index] as Value, charge))
  );
}

/** Refuses a struct whose content an argument may not have. @throws RangeError, TypeError */
type Check = (value: Composite, type: Struct) => void;

/**
 * Checks the rules of Sui's `PrimitiveArgumentLayout`: strings are UTF-8 or ASCII, and an option has at most
 * one element.
 */
function checkArgument({ items: [inner] }: Composite, { module, name }: Struct): void {
  if (module === 'option' && name === 'Option' && composite(inner).items.length > 1) {
    throw new RangeError('an option has several elements');
  }
  if (name !== 'String') return;
  const text = new TextDecoder('utf-8', { fatal: true }).decode(toBytes(composite(inner)));
  if (module === 'ascii' && /[^\0-\x7f]/.test(text)) throw new RangeError('the text is not ASCII');
}

/** Encodes and decodes values in BCS by their types. */
export class Codec {
  readonly #datatypes: Datatypes;

  constructor(datatypes: Datatypes) {
    this.#datatypes = datatypes;
  }

  encode(value: Value, type: MoveType): Uint8Array {
    const parts: Uint8Array[] = [];
    this.#write(value, type, parts);
    return Uint8Array.from(Buffer.concat(parts));
  }

  /** Decodes a value. @throws RangeError for bytes that are not exactly one value of the type */
  decode(bytes: Uint8Array, type: MoveType): Value {
    return this.#decode(bytes, type, () => undefined);
  }

  /**
   * Decodes a value that a transaction gives as bytes. Sui checks strings and options in it, at any depth.
   *
   * @throws RangeError, TypeError for bytes that are not exactly one value of the type
   */
  decodeArgument(bytes: Uint8Array, type: MoveType): Value {
    return this.#decode(bytes, type, checkArgument);
  }

  #decode(bytes: Uint8Array, type: MoveType, check: Check): Value {
    const reader = new Bytes(bytes);
    const value = this.#read(reader, type, check);
    if (reader.left > 0) throw new RangeError('there are bytes after the value');
    return value;
  }

  #write(value: Value, type: MoveType, parts: Uint8Array[]): void {
    if (type.kind === 'vector') {
      const { items } = composite(value);
      parts.push(encodeUleb(items.length));
      if (isByte(type.of)) parts.push(toBytes(value));
      else for (const element of items) this.#write(element, type.of, parts);
    } else if (type.kind === 'struct') {
      const { items, tag } = composite(value);
      const layout = this.#datatypes.findLayout(type);
      if (layout.kind === 'enum') parts.push(encodeUleb(tag));
      const fields = fieldsOf(layout, tag);
      for (const [index, field] of fields.entries()) {
        this.#write(items[index] as Value, instantiate(field.type, type.args), parts);
      }
    } else if (value instanceof Int) {
      parts.push(encodeLittleEndian(value));
    } else if (typeof value === 'string') {
      parts.push(hexToBytes(value.slice(2)));
    } else parts.push(Uint8Array.of(value === true ? 1 : 0));
  }

  #read(reader: Bytes, type: MoveType, check: Check): Value {
    if (type.kind === 'vector') {
      const length = reader.length();
      if (isByte(type.of)) return createVector(reader.take(length));
      // Each element takes at least one byte.
      if (length > reader.left) throw new RangeError('a vector is longer than its bytes');
      return new Composite(Array.from({ length }, () => this.#read(reader, type.of, check)));
    }
    if (type.kind === 'struct') {
      const layout = this.#datatypes.findLayout(type);
      const tag = layout.kind === 'enum' ? reader.length() : 0;
      const fields = fieldsOf(layout, tag).map((field) =>
        this.#read(reader, instantiate(field.type, type.args), check),
      );
      const value = new Composite(fields, tag);
      check(value, type);
      return value;
    }
    if (type.kind !== 'primitive') throw new TypeError(`${format(type)} has no values in BCS`);
    return readPrimitive(reader, type.name);
  }
}

export function isByte(type: MoveType): boolean {
  return type.kind === 'primitive' && type.name === 'u8';
}

export function fieldsOf(layout: Layout, tag: number) {
  if (layout.kind === 'struct') return layout.fields;
  const variant = layout.variants[tag];
  if (variant === undefined) throw new RangeError(`the enum has no variant ${tag}`);
  return variant.fields;
}

function readPrimitive(reader: Bytes, name: string): Value {
  if (name === 'address') return `0x${bytesToHex(reader.take(ADDRESS_BYTES))}`;
  if (name === 'bool') {
    const [byte = 0] = reader.take(1);
    if (byte > 1) throw new RangeError('a bool is 0 or 1');
    return byte === 1;
  }
  const bits = BITS[name];
  if (bits === undefined) throw new TypeError(`${name} has no values in BCS`);
  const bytes = reader.take(bits / 8);
  return new Int(
    bits,
    bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n),
  );
}

function encodeLittleEndian({ bits, value }: Int): Uint8Array {
  return Uint8Array.from({ length: bits / 8 }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn));
}

function encodeUleb(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push((left % 128) + (left < 128 ? 0 : 128));
    if (left < 128) return Uint8Array.from(bytes);
  }
}

class Bytes {
  readonly #bytes: Uint8Array;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#position;
  }

  take(length: number): Uint8Array {
    if (length > this.left) throw new RangeError('the bytes end early');
    this.#position += length;
    return this.#bytes.subarray(this.#position - length, this.#position);
  }

  /** Reads a length in ULEB128, in its shortest form. */
  length(): number {
    let value = 0;
    for (let shift = 0; shift < 32; shift += 7) {
      const [byte = 0] = this.take(1);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte >= 0x80) continue;
      if ((byte === 0 && shift > 0) || value >= 2 ** 32) break;
      return value;
    }
    throw new RangeError('a length is too large, or not in its shortest form');
  }
}
