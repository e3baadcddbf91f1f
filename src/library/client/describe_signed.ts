/** Describes the bytes of a signed answer for people, field by field. */
import { toHex } from '@mysten/bcs';
import { type SchemaField, type SchemaType, unwrapType } from '../wire/schema_type.ts';
import { quantity } from '../wording.ts';
import { ClientError } from './errors.ts';

/** A range of bytes in a signed answer, and its meaning. */
export interface SignedField {
  /**
   * Place in the message: `intent`, `timestamp_ms`, or a path within the payload such as
   * `payload.legs[2].price`.
   */
  readonly path: string;
  /** The type as Move's sources write it. */
  readonly type: string;
  /** Offset of the first byte. */
  readonly from: number;
  /** Offset of the byte after the last byte. */
  readonly to: number;
  /**
   * Value of the bytes: an integer in decimal, `true` or `false`, the text of a String, an address or a
   * `vector<u8>` as `0x` and hexadecimal. For any other vector, it is the length, such as `3 items`; for an
   * Option, it is the tag, `some` or `none`. The contents of vectors and Options have entries of their own.
   */
  readonly value: string;
}

const INTEGERS = new Map([
  ['u8', 1],
  ['u16', 2],
  ['u32', 4],
  ['u64', 8],
  ['u128', 16],
  ['u256', 32],
]);
const ADDRESS_SIZE = 32;
/** BCS limits lengths to 2^31 - 1. */
const MAX_LENGTH = 2 ** 31 - 1;

/**
 * Describes each byte of a signed message, an `IntentMessage { intent, timestamp_ms, payload }` in BCS, as
 * `signedType(…).message` serializes it. The entries are in the order of the bytes, and cover each byte once.
 *
 * Exported as `sui-enclave/client`.
 *
 * @param type of a schema that `readSchema` returned
 * @throws ClientError: CLIENT_INTENT if the message is of another type; CLIENT_SIGNED_BYTES if the bytes are
 *   not exactly one message of this type
 */
export function describeSigned(type: SchemaType, bytes: Uint8Array): readonly SignedField[] {
  const reader = new FieldReader(bytes);
  reader.read('intent', 'u8', undefined);
  if (bytes[0] !== type.intent) {
    throw new ClientError('CLIENT_INTENT', `the bytes have the intent ${bytes[0]}, not ${type.intent}`);
  }
  reader.read('timestamp_ms', 'u64', undefined);
  reader.readAll('payload', type.fields);
  reader.end();
  return reader.fields;
}

class FieldReader {
  readonly fields: SignedField[] = [];
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    if (!(bytes instanceof Uint8Array)) throw createError('they are not a Uint8Array');
    this.#bytes = bytes;
  }

  readAll(path: string, fields: readonly SchemaField[]): void {
    for (const { name, type, fields: inner } of fields) this.read(`${path}.${name}`, type, inner);
  }

  /** @param inner the fields of a struct, if the type is a struct, or a vector or Option of structs */
  read(path: string, type: string, inner: readonly SchemaField[] | undefined): void {
    const [wrapper] = unwrapType(type).wrappers;
    if (wrapper === 'Option') this.#option(path, type, inner);
    else if (wrapper === 'vector' && type !== 'vector<u8>') this.#vector(path, type, inner);
    else if (inner !== undefined) this.readAll(path, inner);
    else this.#leaf(path, type);
  }

  end(): void {
    const remaining = this.#bytes.length - this.#at;
    if (remaining > 0) throw createError(`${quantity(remaining, 'byte')} after the message`);
  }

  #option(path: string, type: string, inner: readonly SchemaField[] | undefined): void {
    const from = this.#at;
    const isSome = this.#flag(path);
    this.#add(path, type, from, isSome ? 'some' : 'none');
    if (isSome) this.read(`${path}.some`, getElementType(type), inner);
  }

  #vector(path: string, type: string, inner: readonly SchemaField[] | undefined): void {
    const from = this.#at;
    const length = this.#length(path);
    this.#add(path, type, from, length === 1 ? '1 item' : `${length} items`);
    for (let index = 0; index < length; index++) this.read(`${path}[${index}]`, getElementType(type), inner);
  }

  #leaf(path: string, type: string): void {
    const from = this.#at;
    this.#add(path, type, from, this.#valueOf(path, type));
  }

  #valueOf(path: string, type: string): string {
    const width = INTEGERS.get(type);
    if (width !== undefined) {
      return this.#take(width, path)
        .reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
        .toString();
    }
    if (type === 'bool') return String(this.#flag(path));
    if (type === 'address') return `0x${toHex(this.#take(ADDRESS_SIZE, path))}`;
    const content = this.#take(this.#length(path), path);
    if (type === 'vector<u8>') return `0x${toHex(content)}`;
    if (type === 'String') return decodeText(content, path);
    throw createError(`the type of ${path} is not known`);
  }

  #flag(path: string): boolean {
    const [byte] = this.#take(1, path);
    if (byte !== 0 && byte !== 1) throw createError(`a byte of ${path} is neither 0 nor 1`);
    return byte === 1;
  }

  /** Reads a length in ULEB128, in its shortest form. */
  #length(path: string): number {
    let length = 0;
    for (let factor = 1; factor <= MAX_LENGTH; factor *= 128) {
      const [byte = 0] = this.#take(1, path);
      length += (byte & 0x7f) * factor;
      if (byte >= 0x80) continue;
      if (byte === 0 && factor > 1) break;
      if (length > MAX_LENGTH) break;
      return length;
    }
    throw createError(`the length of ${path} is not in its shortest form, or too large`);
  }

  #take(count: number, path: string): Uint8Array {
    if (count > this.#bytes.length - this.#at) throw createError(`they end within ${path}`);
    const part = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += count;
    return part;
  }

  #add(path: string, type: string, from: number, value: string): void {
    this.fields.push({ path, type, from, to: this.#at, value });
  }
}

/** Returns the type of the items of a vector or an Option. */
function getElementType(type: string): string {
  return type.slice(type.indexOf('<') + 1, -1);
}

function decodeText(content: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch (cause) {
    throw createError(`${path} is not UTF-8`, { cause });
  }
}

function createError(problem: string, options?: ErrorOptions): ClientError {
  return new ClientError(
    'CLIENT_SIGNED_BYTES',
    `the bytes are not one message of this type: ${problem}`,
    options,
  );
}
