/**
 * Reads one CBOR item (RFC 8949) into a tree that hides nothing: a map keeps its entries as received, and a
 * float can't be mistaken for an integer. `cborg` splits the bytes into tokens. This module adds what `cborg`
 * leaves open: where a break may occur, how deep items nest, whether strings are UTF-8, and strings of
 * indefinite length.
 *
 * The strict form accepts only one encoding of each item. The lenient form accepts any. The form `sui` is
 * lenient too, and treats tags of bignums like ciborium, the CBOR reader of Sui's verifier.
 */
import { type Token, Tokenizer, Type } from 'cborg';
import { AttestationError } from './errors.ts';

/** Integers beyond ±(2^53 - 1) are bigints; `undefined` reads as null. */
export type CborItem =
  | number
  | bigint
  | string
  | boolean
  | null
  | Uint8Array
  | CborItem[]
  | CborMap
  | CborTag
  | CborFloat;

export class CborMap {
  readonly entries: readonly (readonly [key: CborItem, value: CborItem])[];

  constructor(entries: readonly (readonly [CborItem, CborItem])[]) {
    this.entries = entries;
  }
}

export class CborTag {
  readonly tag: number | bigint;
  readonly content: CborItem;

  constructor(tag: number | bigint, content: CborItem) {
    this.tag = tag;
    this.content = content;
  }
}

export class CborFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export type CborForm = 'strict' | 'lenient' | 'sui';

/** Maximum nesting of arrays, maps and tags, the same as that of Sui's reader. */
const MAX_DEPTH = 256;
/** First bytes of strings of indefinite length (RFC 8949 section 3.2.3), which `cborg` doesn't read. */
const INDEFINITE_BYTES = 0x5f;
const INDEFINITE_TEXT = 0x7f;
const BREAK = 0xff;
const POSITIVE_BIGNUM = 2;
const NEGATIVE_BIGNUM = 3;
/** Maximum size in bytes of a bignum that Sui's reader accepts as a number. */
const MAX_BIGNUM = 16;

/**
 * Returns the first item in `bytes` and its size in bytes. The caller checks the bytes after it.
 *
 * @param form `strict` rejects indefinite lengths, and lengths and integers in more bytes than necessary
 * @throws AttestationError: CBOR_MALFORMED, CBOR_INDEFINITE_LENGTH
 */
export function readCbor(bytes: Uint8Array, form: CborForm): { item: CborItem; length: number } {
  const reader = new Reader(bytes, form);
  const dataItem = reader.readItem(0);
  return { item: dataItem, length: reader.position };
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #form: CborForm;
  readonly #tokens: PositionedTokenizer;

  constructor(bytes: Uint8Array, form: CborForm) {
    // Copy the bytes, so that the result doesn't change with the caller's buffer. Slices of a Buffer would be
    // views.
    this.#bytes = new Uint8Array(bytes);
    this.#form = form;
    this.#tokens = new PositionedTokenizer(this.#bytes, {
      strict: form === 'strict',
      retainStringBytes: true,
      allowBigInt: true,
    });
  }

  get position(): number {
    return this.#tokens.pos();
  }

  readItem(depth: number): CborItem {
    const first = this.#peek();
    if (first === INDEFINITE_BYTES) return concat(this.#chunks(Type.bytes, first));
    if (first === INDEFINITE_TEXT) {
      // Each chunk must be UTF-8 by itself (RFC 8949 section 3.2.3).
      return this.#chunks(Type.string, first).map(decodeUtf8).join('');
    }
    const { type, value, byteValue } = this.#next();
    if (isType(type, Type.bytes)) return value;
    if (isType(type, Type.string)) return decodeUtf8(byteValue ?? new Uint8Array());
    if (isType(type, Type.float)) return new CborFloat(value);
    if (isType(type, Type.undefined)) return null;
    if (isType(type, Type.break)) throw malformed('a break occurs in place of an item');
    if (type.terminal) return value;
    if (depth >= MAX_DEPTH) throw malformed(`items nest deeper than ${MAX_DEPTH}`);
    if (isType(type, Type.array)) return this.#array(value, depth + 1);
    if (isType(type, Type.map)) return this.#map(value, depth + 1);
    return this.#tag(value, depth + 1);
  }

  /** @param count the number of items, or Infinity when a break ends them */
  #array(count: number | bigint, depth: number): CborItem[] {
    const items: CborItem[] = [];
    while (this.#hasMore(items.length, count)) items.push(this.readItem(depth));
    return items;
  }

  #map(count: number | bigint, depth: number): CborMap {
    const entries: [CborItem, CborItem][] = [];
    while (this.#hasMore(entries.length, count)) entries.push([this.readItem(depth), this.readItem(depth)]);
    return new CborMap(entries);
  }

  #hasMore(done: number, count: number | bigint): boolean {
    if (count !== Number.POSITIVE_INFINITY) return done < count;
    this.#refuseIndefinite();
    if (this.#peek() !== BREAK) return true;
    this.#next();
    return false;
  }

  /** Converts bignums from -2^64 to 2^64 - 1 into integers, and keeps other tags. */
  #tag(tag: number | bigint, depth: number): CborItem {
    const first = this.#peek();
    const content = this.readItem(depth);
    if (tag !== POSITIVE_BIGNUM && tag !== NEGATIVE_BIGNUM) return new CborTag(tag, content);
    const isBytes = content instanceof Uint8Array;
    if (this.#form === 'sui') {
      // With any other content, these tags are kept like all others.
      const isNumber = isBytes && first !== INDEFINITE_BYTES && content.length <= MAX_BIGNUM;
      return isNumber ? readSuiBignum(tag, content) : new CborTag(tag, content);
    }
    if (!isBytes) throw malformed('the content of a bignum is not a byte string');
    return toInteger(tag, readMagnitude(content)) ?? new CborTag(tag, content);
  }

  /** Returns the chunks of a string of indefinite length. Such strings may nest, as in Sui's reader. */
  #chunks(type: Type, opening: number): Uint8Array[] {
    this.#refuseIndefinite();
    const chunks: Uint8Array[] = [];
    let open = 0;
    do {
      const first = this.#peek();
      if (first === opening || first === BREAK) {
        open += first === opening ? 1 : -1;
        this.#tokens.skipByte();
      } else {
        const token = this.#next();
        if (!isType(token.type, type)) throw malformed('a string has a chunk of another type');
        chunks.push(token.byteValue ?? token.value);
      }
    } while (open > 0);
    return chunks;
  }

  #refuseIndefinite(): void {
    if (this.#form === 'strict') {
      throw new AttestationError(
        'CBOR_INDEFINITE_LENGTH',
        'outside its payload, an attestation document must have definite lengths only',
      );
    }
  }

  #peek(): number {
    const byte = this.#bytes[this.position];
    if (byte === undefined) throw malformed('it ends in the middle of an item');
    return byte;
  }

  #next(): Token {
    try {
      return this.#tokens.next();
    } catch (cause) {
      throw malformed(`byte ${this.position} doesn't start a valid item`, { cause });
    }
  }
}

/** `cborg`'s tokenizer, which can also skip one byte. */
class PositionedTokenizer extends Tokenizer {
  skipByte(): void {
    this._pos += 1;
  }
}

function readMagnitude(bytes: Uint8Array): bigint {
  return bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

/** Returns a bignum as an integer, or null if its magnitude exceeds a u64. */
function toInteger(tag: number, magnitude: bigint): number | bigint | null {
  if (magnitude >= 2n ** 64n) return null;
  const integer = tag === POSITIVE_BIGNUM ? magnitude : -1n - magnitude;
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
}

/**
 * Converts a bignum like Sui's reader, which holds it in 128 bits, signed if it is negative. Returns a bignum
 * beyond 64 bits as a tag.
 */
function readSuiBignum(tag: number, bytes: Uint8Array): CborItem {
  const magnitude = readMagnitude(bytes);
  if (tag === NEGATIVE_BIGNUM && magnitude >= 2n ** 127n) throw malformed('a negative bignum is too large');
  const start = bytes.findIndex((byte) => byte !== 0);
  return toInteger(tag, magnitude) ?? new CborTag(tag, bytes.subarray(start));
}

function isType(type: Type, expectedType: Type): boolean {
  return Type.equals(type, expectedType);
}

/** `fatal` rejects invalid bytes, which would silently become U+FFFD; `ignoreBOM` keeps a leading U+FEFF. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw malformed('a string is not UTF-8', { cause });
  }
}

function malformed(problem: string, options?: ErrorOptions): AttestationError {
  const message = `the attestation document is not well-formed CBOR: ${problem}`;
  return new AttestationError('CBOR_MALFORMED', message, options);
}

function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
