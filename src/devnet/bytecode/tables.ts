/** Reads the tables of a compiled Move module and their entries, in the format of `file_format_common.rs`. */
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
    const entries: T[] = [];
    for (let left = this.index(); left > 0; left -= 1) entries.push(read());
    return entries;
  }

  /** Reads entries up to the end of the table. */
  all<T>(read: () => T): T[] {
    const entries: T[] = [];
    while (!this.isAtEnd) entries.push(read());
    return entries;
  }
}

export function getEntry<T>(table: readonly T[], index: number): T {
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
    const reader = new Reader(bytes);
    if (bytesToHex(reader.take(4)) !== MAGIC) throw new RangeError('the bytes are not a Move module');
    const [low = 0, middle = 0, high = 0] = reader.take(4);
    this.version = low + middle * 2 ** 8 + high * 2 ** 16;
    if (this.version < 5 || this.version > NEWEST_VERSION) {
      throw new RangeError(`version ${this.version} of the binary format is not supported`);
    }
    const headers = reader.list(() => [reader.byte(), reader.index(), reader.index()] as const);
    const start = reader.position;
    for (const [kind, offset, length] of headers) {
      this.#tables.set(kind, [start + offset, start + offset + length]);
    }
    const end = Math.max(start, ...[...this.#tables.values()].map(([, to]) => to));
    this.self = new Reader(bytes, end).index();
  }

  read<T>(kind: number, readEntry: (reader: Reader) => T): T[] {
    const [from, to] = this.#tables.get(kind) ?? [0, 0];
    const reader = new Reader(this.#bytes, from, to);
    return reader.all(() => readEntry(reader));
  }
}

function readType(reader: Reader, handles: readonly { module: string; name: string }[]): string {
  const kind = reader.byte();
  const primitive = PRIMITIVES[kind];
  if (primitive !== undefined) return primitive;
  const inner = () => readType(reader, handles);
  const datatype = () => {
    const { module, name } = getEntry(handles, reader.index());
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
      return `T${reader.index()}`;
    case 10:
      return `vector<${inner()}>`;
    case 11:
      return `${datatype()}<${reader.list(inner).join()}>`;
    default:
      throw new RangeError(`the type ${kind} is unknown`);
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
  type(reader: Reader): string;
}

/** Reads the handles of a module. @param self address that replaces 0x0 */
export function readHandles(tables: Tables, self: string): Handles {
  const names = tables.read(TABLE.identifiers, (reader) =>
    new TextDecoder().decode(reader.take(reader.index())),
  );
  const addresses = tables.read(TABLE.addresses, (reader) => `0x${bytesToHex(reader.take(32))}`);
  const modules = tables.read(TABLE.modules, (reader) => {
    const address = getEntry(addresses, reader.index());
    return `${/^0x0+$/.test(address) ? self : address}::${getEntry(names, reader.index())}`;
  });
  const datatypes = tables.read(TABLE.datatypes, (reader) => ({
    module: getEntry(modules, reader.index()),
    name: getEntry(names, reader.index()),
    abilities: reader.byte(),
    typeParameters: reader.list(() => `${reader.byte()}${reader.byte() === 0 ? '' : ' phantom'}`).join(),
  }));
  const type = (reader: Reader): string => readType(reader, datatypes);
  const signatures = tables.read(TABLE.signatures, (reader) => reader.list(() => type(reader)));
  const functions = tables.read(TABLE.functions, (reader) => ({
    module: getEntry(modules, reader.index()),
    name: getEntry(names, reader.index()),
    parameters: getEntry(signatures, reader.index()),
    returns: getEntry(signatures, reader.index()),
    constraints: reader.list(() => reader.byte()),
  }));
  return { names, modules, datatypes, signatures, functions, type };
}
