/** Reads the tables of a compiled Move module and their items, in the format of `file_format_common.rs`. */
import { bytesToHex } from '@noble/hashes/utils.js';

const MAGIC = 'a11ceb0b';
const NEWEST_VERSION = 7;
export const TABLE = {
  modules: 0x1,
  datatypes: 0x2,
  functions: 0x3,
  functionInstances: 0x4,
  signatures: 0x5,
  constants: 0x6,
  identifiers: 0x7,
  addresses: 0x8,
  structs: 0xa,
  structInstances: 0xb,
  functionDefinitions: 0xc,
  fields: 0xd,
  fieldInstances: 0xe,
  enums: 0x11,
  enumInstances: 0x12,
  variants: 0x13,
  variantInstances: 0x14,
} as const;

/** Mark of a datatype with fields. All datatypes outside the standard library have this mark. */
export const DECLARED = 2;

const PRIMITIVES: Readonly<Record<number, string>> = {
  1: 'bool',
  2: 'u8',
  3: 'u64',
  4: 'u128',
  5: 'address',
  12: 'signer',
  13: 'u16',
  14: 'u32',
  15: 'u256',
};

export class Reader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  position: number;

  constructor(bytes: Uint8Array, position = 0, end = bytes.length) {
    if (end > bytes.length) throw new RangeError('a table ends outside the module');
    this.#bytes = bytes;
    this.position = position;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.position === this.#end;
  }

  byte(): number {
    const [value = 0] = this.take(1);
    return value;
  }

  take(length: number): Uint8Array {
    if (this.position + length > this.#end) throw new RangeError('the module ends early');
    this.position += length;
    return this.#bytes.subarray(this.position - length, this.position);
  }

  /** Reads an index in ULEB128. */
  index(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('an index is too large');
  }

  list<T>(read: () => T): T[] {
    const items: T[] = [];
    for (let left = this.index(); left > 0; left -= 1) items.push(read());
    return items;
  }

  /** Reads items up to the end of the table. */
  all<T>(read: () => T): T[] {
    const items: T[] = [];
    while (!this.isAtEnd) items.push(read());
    return items;
  }
}

export function entry<T>(table: readonly T[], index: number): T {
  const tableEntry = table[index];
  if (tableEntry === undefined) throw new RangeError('an index points outside its table');
  return tableEntry;
}

export class Tables {
  readonly version: number;
  /** The index of the module's own handle. */
  readonly self: number;
  readonly #bytes: Uint8Array;
  readonly #tables = new Map<number, readonly [from: number, to: number]>();

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    const at = new Reader(bytes);
    if (bytesToHex(at.take(4)) !== MAGIC) throw new RangeError('it is not a Move module');
    const [low = 0, middle = 0, high = 0] = at.take(4);
    this.version = low + middle * 2 ** 8 + high * 2 ** 16;
    if (this.version < 5 || this.version > NEWEST_VERSION) {
      throw new RangeError(`version ${this.version} of the binary format is not known here`);
    }
    const headers = at.list(() => [at.byte(), at.index(), at.index()] as const);
    const start = at.position;
    for (const [kind, offset, length] of headers) {
      this.#tables.set(kind, [start + offset, start + offset + length]);
    }
    const end = Math.max(start, ...[...this.#tables.values()].map(([, to]) => to));
    this.self = new Reader(bytes, end).index();
  }

  read<T>(kind: number, item: (at: Reader) => T): T[] {
    const [from, to] = this.#tables.get(kind) ?? [0, 0];
    const at = new Reader(this.#bytes, from, to);
    return at.all(() => item(at));
  }
}

function readType(at: Reader, handles: readonly { module: string; name: string }[]): string {
  const kind = at.byte();
  const primitive = PRIMITIVES[kind];
  if (primitive !== undefined) return primitive;
  const inner = () => readType(at, handles);
  const datatype = () => {
    const { module, name } = entry(handles, at.index());
    return `${module}::${name}`;
  };
  switch (kind) {
    case 6:
      return `&${inner()}`;
    case 7:
      return `&mut ${inner()}`;
    case 8:
      return datatype();
    case 9:
      return `T${at.index()}`;
    case 10:
      return `vector<${inner()}>`;
    case 11:
      return `${datatype()}<${at.list(inner).join()}>`;
    default:
      throw new RangeError(`an unknown type, ${kind}`);
  }
}

/** Handles of a module, by which its other tables name types and functions. */
export interface Handles {
  readonly names: readonly string[];
  /** Modules by address and name. */
  readonly modules: readonly string[];
  readonly datatypes: readonly {
    readonly module: string;
    readonly name: string;
    readonly abilities: number;
    readonly typeParameters: string;
  }[];
  readonly signatures: readonly (readonly string[])[];
  readonly functions: readonly {
    readonly module: string;
    readonly name: string;
    readonly parameters: readonly string[];
    readonly returns: readonly string[];
    readonly constraints: readonly number[];
  }[];
  /** Reads a type as text. */
  type(at: Reader): string;
}

/** @param self address that replaces 0x0 in the result */
export function readHandles(tables: Tables, self: string): Handles {
  const names = tables.read(TABLE.identifiers, (at) => new TextDecoder().decode(at.take(at.index())));
  const addresses = tables.read(TABLE.addresses, (at) => `0x${bytesToHex(at.take(32))}`);
  const modules = tables.read(TABLE.modules, (at) => {
    const address = entry(addresses, at.index());
    return `${/^0x0+$/.test(address) ? self : address}::${entry(names, at.index())}`;
  });
  const datatypes = tables.read(TABLE.datatypes, (at) => ({
    module: entry(modules, at.index()),
    name: entry(names, at.index()),
    abilities: at.byte(),
    typeParameters: at.list(() => `${at.byte()}${at.byte() === 0 ? '' : ' phantom'}`).join(),
  }));
  const type = (at: Reader): string => readType(at, datatypes);
  const signatures = tables.read(TABLE.signatures, (at) => at.list(() => type(at)));
  const functions = tables.read(TABLE.functions, (at) => ({
    module: entry(modules, at.index()),
    name: entry(names, at.index()),
    parameters: entry(signatures, at.index()),
    returns: entry(signatures, at.index()),
    constraints: at.list(() => at.byte()),
  }));
  return { names, modules, datatypes, signatures, functions, type };
}
