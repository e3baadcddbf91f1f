/**
 * Reads one CBOR item (RFC 8949) into a tree that hides nothing: a map keeps its entries as they came, a
 * float can't be taken for an integer. `cborg` splits the bytes into tokens; what it leaves open is decided
 * here: where a break may stand, how deep items nest, whether text is UTF-8, strings of indefinite length.
 *
 * In the lenient form it accepts what the CBOR reader of Sui's verifier accepts, in the strict form only
 * one way to write an item.
 */
import { type Token, Tokenizer, Type } from 'cborg';
import { IndefiniteLengthError, MalformedCborError } from './errors.ts';

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

export type CborForm = 'strict' | 'lenient';

/** How deep arrays, maps and tags may nest: as deep as Sui's reader goes. */
const MAX_DEPTH = 256;
/** First bytes of strings of indefinite length (RFC 8949 section 3.2.3), which `cborg` does not read. */
const INDEFINITE_BYTES = 0x5f;
const INDEFINITE_TEXT = 0x7f;
const BREAK = 0xff;
const POSITIVE_BIGNUM = 2;
const NEGATIVE_BIGNUM = 3;

/**
 * The first item in `bytes` and how many bytes it took: what follows is the caller's to judge.
 *
 * @param form `strict` refuses indefinite lengths, and lengths and integers in more bytes than they need
 * @throws MalformedCborError, IndefiniteLengthError
 */
export function readCbor(bytes: Uint8Array, form: CborForm): { item: CborItem; length: number } {
  const reader = new Reader(bytes, form);
  const item = reader.item(0);
  return { item, length: reader.position };
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #form: CborForm;
  readonly #tokens: PositionedTokenizer;

  constructor(bytes: Uint8Array, form: CborForm) {
    // A copy: nothing that is read may change when the caller's bytes do. A Buffer's slices would be views.
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

  item(depth: number): CborItem {
    const first = this.#peek();
    if (first === INDEFINITE_BYTES) return concat(this.#chunks(Type.bytes, first));
    if (first === INDEFINITE_TEXT) {
      // Each chunk is UTF-8 by itself (RFC 8949 section 3.2.3).
      return this.#chunks(Type.string, first).map(utf8).join('');
    }
    const { type, value, byteValue } = this.#next();
    if (is(type, Type.bytes)) return value;
    if (is(type, Type.string)) return utf8(byteValue ?? new Uint8Array());
    if (is(type, Type.float)) return new CborFloat(value);
    if (is(type, Type.undefined)) return null;
    if (is(type, Type.break)) throw new MalformedCborError('a break stands where an item must be');
    if (type.terminal) return value;
    if (depth >= MAX_DEPTH) throw new MalformedCborError(`items nest deeper than ${MAX_DEPTH}`);
    if (is(type, Type.array)) return this.#array(value, depth + 1);
    if (is(type, Type.map)) return this.#map(value, depth + 1);
    return this.#tag(value, depth + 1);
  }

  /** @param count how many items, or Infinity when a break ends them */
  #array(count: number | bigint, depth: number): CborItem[] {
    const items: CborItem[] = [];
    while (this.#more(items.length, count)) items.push(this.item(depth));
    return items;
  }

  #map(count: number | bigint, depth: number): CborMap {
    const entries: [CborItem, CborItem][] = [];
    while (this.#more(entries.length, count)) entries.push([this.item(depth), this.item(depth)]);
    return new CborMap(entries);
  }

  #more(done: number, count: number | bigint): boolean {
    if (count !== Number.POSITIVE_INFINITY) return done < count;
    this.#refuseIndefinite();
    if (this.#peek() !== BREAK) return true;
    this.#next();
    return false;
  }

  /** Bignums that a u64, or its negative counterpart, can hold are integers; other tags stay. */
  #tag(tag: number | bigint, depth: number): CborItem {
    const content = this.item(depth);
    if (tag !== POSITIVE_BIGNUM && tag !== NEGATIVE_BIGNUM) return new CborTag(tag, content);
    if (!(content instanceof Uint8Array)) throw new MalformedCborError('a bignum holds no byte string');
    const start = content.findIndex((byte) => byte !== 0);
    const significant = start === -1 ? content.subarray(0, 0) : content.subarray(start);
    if (significant.length > 8) return new CborTag(tag, content);
    const magnitude = significant.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    const integer = tag === POSITIVE_BIGNUM ? magnitude : -1n - magnitude;
    return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
  }

  /** The chunks of a string of indefinite length. Sui's reader lets such strings nest, so this does. */
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
        if (!is(token.type, type)) throw new MalformedCborError('a string has a chunk of another type');
        chunks.push(token.byteValue ?? token.value);
      }
    } while (open > 0);
    return chunks;
  }

  #refuseIndefinite(): void {
    if (this.#form === 'strict') throw new IndefiniteLengthError();
  }

  #peek(): number {
    const byte = this.#bytes[this.position];
    if (byte === undefined) throw new MalformedCborError('it ends in the middle of an item');
    return byte;
  }

  #next(): Token {
    try {
      return this.#tokens.next();
    } catch (cause) {
      throw new MalformedCborError(`byte ${this.position} starts no readable item`, { cause });
    }
  }
}

/** `cborg`'s tokenizer, which can also step over one byte. */
class PositionedTokenizer extends Tokenizer {
  skipByte(): void {
    this._pos += 1;
  }
}

function is(type: Type, other: Type): boolean {
  return Type.equals(type, other);
}

/** `fatal`: otherwise a wrong byte turns into U+FFFD in silence. `ignoreBOM`: otherwise a leading U+FEFF is lost. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function utf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new MalformedCborError('a text is not UTF-8', { cause });
  }
}

function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    joined.set(chunk, offset);
    offset += chunk.length;
  }
  return joined;
}
