/**
 * Reads what other modules depend on from a compiled Move module: its datatypes and its public functions. The format is
 * that of Move's binary format, versions 5 to 7 (move-binary-format, `file_format_common.rs`).
 */
import { bytesToHex } from '@noble/hashes/utils.js';

/** A module's datatypes and public functions, by name, as text that is equal if and only if they are. */
export interface ModuleInterface {
  readonly address: string;
  readonly name: string;
  readonly datatypes: ReadonlyMap<string, Datatype>;
  readonly functions: ReadonlyMap<string, PublicFunction>;
  /** The functions that a transaction can call: the public ones, and those that are entry functions only. */
  readonly callable: ReadonlyMap<string, PublicFunction>;
  /** What publishing calls. */
  readonly init: PublicFunction | undefined;
}

export interface Datatype {
  /** Of the type: bits of copy (1), drop (2), store (4), key (8). */
  readonly abilities: number;
  readonly typeParameters: string;
  /** Fields in order, or variants with theirs. */
  readonly layout: string;
}

export interface PublicFunction {
  /** For each type parameter, the abilities that it requires. */
  readonly constraints: readonly number[];
  readonly parameters: string;
  readonly returns: string;
}

const MAGIC = 'a11ceb0b';
const NEWEST_VERSION = 7;
const TABLE = {
  modules: 0x1,
  datatypes: 0x2,
  functions: 0x3,
  signatures: 0x5,
  identifiers: 0x7,
  addresses: 0x8,
  structs: 0xa,
  functionDefinitions: 0xc,
  enums: 0x11,
} as const;

/** A datatype with fields, as all outside the standard library are. */
const DECLARED = 2;

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

/** The instructions whose operand is an index, and those whose operands end with a value of so many bytes. */
const INDEXED = new Set([
  ...[0x03, 0x04, 0x05, 0x07, ...range(0x0a, 0x13), ...range(0x29, 0x2d), ...range(0x36, 0x47)],
  ...range(0x4e, 0x56),
]);
const VALUE_BYTES: Readonly<Record<number, number>> = {
  6: 8,
  49: 1,
  50: 16,
  64: 8,
  70: 8,
  72: 2,
  73: 4,
  74: 32,
};
const LAST_INSTRUCTION = 0x56;

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

class Reader {
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

  /** ULEB128. */
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

  /** Everything up to the end of the table. */
  all<T>(read: () => T): T[] {
    const items: T[] = [];
    while (!this.isAtEnd) items.push(read());
    return items;
  }
}

/**
 * @param self the address that stands in the result for 0x0, which unpublished modules have
 * @throws RangeError, if it is not a module in a version of the format that this reads
 */
export function readModule(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ModuleInterface {
  const tables = new Tables(bytes);
  const names = tables.read(TABLE.identifiers, (at) => new TextDecoder().decode(at.take(at.index())));
  const addresses = tables.read(TABLE.addresses, (at) => `0x${bytesToHex(at.take(32))}`);
  const modules = tables.read(TABLE.modules, (at) => {
    const address = entry(addresses, at.index());
    return `${/^0x0+$/.test(address) ? self : address}::${entry(names, at.index())}`;
  });
  const handles = tables.read(TABLE.datatypes, (at) => ({
    module: entry(modules, at.index()),
    name: entry(names, at.index()),
    abilities: at.byte(),
    typeParameters: at.list(() => `${at.byte()}${at.byte() === 0 ? '' : ' phantom'}`).join(),
  }));
  const type = (at: Reader): string => typeOf(at, handles);
  const signatures = tables.read(TABLE.signatures, (at) => at.list(() => type(at)).join());
  const functions = tables.read(TABLE.functions, (at) => ({
    module: entry(modules, at.index()),
    name: entry(names, at.index()),
    parameters: entry(signatures, at.index()),
    returns: entry(signatures, at.index()),
    constraints: at.list(() => at.byte()),
  }));
  const fields = (at: Reader) => at.list(() => `${entry(names, at.index())}: ${type(at)}`).join();
  const structs = tables.read(TABLE.structs, (at) => {
    const handle = entry(handles, at.index());
    if (at.byte() !== DECLARED) throw new RangeError('a struct of an unknown kind');
    return { ...handle, layout: `struct {${fields(at)}}` };
  });
  const enums = tables.read(TABLE.enums, (at) => {
    const handle = entry(handles, at.index());
    if (at.byte() !== DECLARED) throw new RangeError('an enum of an unknown kind');
    const variants = at.list(() => `${entry(names, at.index())} {${fields(at)}}`);
    return { ...handle, layout: `enum {${variants.join()}}` };
  });
  const definitions = tables.read(TABLE.functionDefinitions, (at) => {
    const handle = entry(functions, at.index());
    const isPublic = at.byte() === 1;
    const isEntry = (skipBody(at, tables.version) & ENTRY) !== 0;
    return { handle, isPublic, isEntry };
  });
  const [address = '', name = ''] = entry(modules, tables.self).split('::');
  const byName = (some: typeof definitions) => new Map(some.map(({ handle }) => [handle.name, handle]));
  return {
    address,
    name,
    datatypes: new Map([...structs, ...enums].map((datatype) => [datatype.name, datatype])),
    functions: byName(definitions.filter(({ isPublic }) => isPublic)),
    callable: byName(definitions.filter(({ isPublic, isEntry }) => isPublic || isEntry)),
    init: definitions.find(({ handle }) => handle.name === 'init')?.handle,
  };
}

function entry<T>(table: readonly T[], index: number): T {
  const found = table[index];
  if (found === undefined) throw new RangeError('an index points outside its table');
  return found;
}

class Tables {
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

function typeOf(at: Reader, handles: readonly { module: string; name: string }[]): string {
  const kind = at.byte();
  const primitive = PRIMITIVES[kind];
  if (primitive !== undefined) return primitive;
  const inner = () => typeOf(at, handles);
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

const NATIVE = 0x2;
const ENTRY = 0x4;

/** The rest of a function's definition, after its visibility. Returns its flags. */
function skipBody(at: Reader, version: number): number {
  const flags = at.byte();
  at.list(() => at.index());
  if ((flags & NATIVE) !== 0) return flags;
  at.index();
  at.list(() => {
    const code = at.byte();
    if (code === 0 || code > LAST_INSTRUCTION) throw new RangeError(`an unknown instruction, ${code}`);
    if (INDEXED.has(code)) at.index();
    at.take(VALUE_BYTES[code] ?? 0);
  });
  // The jump tables of `match`.
  if (version >= 7) {
    at.list(() => {
      at.index();
      const branches = at.index();
      at.byte();
      for (let branch = 0; branch < branches; branch += 1) at.index();
    });
  }
  return flags;
}
