/**
 * Reads the parts of a compiled Move module that other modules depend on: its datatypes and its public
 * functions. It reads versions 5 to 7 of Move's binary format (move-binary-format, `file_format_common.rs`).
 */
import { ENTRY, readBody } from './body.ts';
import { OPCODE } from './opcodes.ts';
import { DECLARED, getEntry, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/**
 * Datatypes and public functions of a module by name, as texts. Two texts are equal if and only if the
 * declarations are.
 */
export interface ModuleInterface {
  readonly address: string;
  readonly name: string;
  readonly datatypes: ReadonlyMap<string, Datatype>;
  readonly functions: ReadonlyMap<string, PublicFunction>;
  /** Functions that a transaction can call: public functions, and entry functions that are not public. */
  readonly callable: ReadonlyMap<string, PublicFunction>;
  /** Structs of the module that a function creates, except for generic ones, by function name. */
  readonly packed: ReadonlyMap<string, readonly string[]>;
  /** All functions of the module. */
  readonly declared: ReadonlyMap<string, DeclaredFunction>;
  /** Function that runs when the package is published; undefined if the module has none. */
  readonly init: PublicFunction | undefined;
  /** Addresses of the other packages whose modules this module names. */
  readonly dependencies: readonly string[];
}

export interface Datatype {
  /** Abilities of the type: bits of copy (1), drop (2), store (4), key (8). */
  readonly abilities: number;
  readonly typeParameters: string;
  /** Fields in order, or variants with their fields. */
  readonly layout: string;
}

export interface PublicFunction {
  /** Abilities that each type parameter requires. */
  readonly constraints: readonly number[];
  readonly parameters: string;
  readonly returns: string;
}

export interface DeclaredFunction extends PublicFunction {
  readonly visibility: 'private' | 'public' | 'friend';
  readonly isEntry: boolean;
}

/** Visibilities by the byte that encodes them. */
const VISIBILITY: Readonly<Record<number, DeclaredFunction['visibility']>> = {
  0: 'private',
  1: 'public',
  3: 'friend',
};

/**
 * Reads the interface of a module.
 *
 * @param self address that replaces 0x0, which is the address of unpublished modules
 * @throws RangeError, if the bytes are not a module in a supported version of the format
 */
export function readModule(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ModuleInterface {
  const tables = new Tables(bytes);
  const handles = readHandles(tables, self);
  const { names, datatypes, type } = handles;
  const functions = handles.functions.map(({ parameters, returns, ...handle }) => ({
    ...handle,
    parameters: parameters.join(),
    returns: returns.join(),
  }));
  const fields = (reader: Reader) =>
    reader.list(() => `${getEntry(names, reader.index())}: ${type(reader)}`).join();
  const structs = tables.read(TABLE.structs, (reader) => {
    const handle = getEntry(datatypes, reader.index());
    if (reader.byte() !== DECLARED) throw new RangeError('a struct has an unknown kind');
    return { ...handle, layout: `struct {${fields(reader)}}` };
  });
  const enums = tables.read(TABLE.enums, (reader) => {
    const handle = getEntry(datatypes, reader.index());
    if (reader.byte() !== DECLARED) throw new RangeError('an enum has an unknown kind');
    const variants = reader.list(() => `${getEntry(names, reader.index())} {${fields(reader)}}`);
    return { ...handle, layout: `enum {${variants.join()}}` };
  });
  const definitions = tables.read(TABLE.functionDefinitions, (reader) => {
    const handle = getEntry(functions, reader.index());
    const visibility = VISIBILITY[reader.byte()];
    if (visibility === undefined) throw new RangeError('a function has an unknown visibility');
    const { flags, instructions } = readBody(reader, tables.version);
    const packs = instructions.filter(({ code }) => code === OPCODE.pack);
    const packed = packs.map(({ operand }) => getEntry(structs, operand).name);
    return { handle, visibility, isEntry: (flags & ENTRY) !== 0, packed };
  });
  const [address = '', name = ''] = getEntry(handles.modules, tables.self).split('::');
  const byName = (functionList: typeof definitions) =>
    new Map(functionList.map(({ handle }) => [handle.name, handle]));
  return {
    address,
    name,
    datatypes: new Map([...structs, ...enums].map((datatype) => [datatype.name, datatype])),
    functions: byName(definitions.filter(({ visibility }) => visibility === 'public')),
    callable: byName(definitions.filter(({ visibility, isEntry }) => visibility === 'public' || isEntry)),
    declared: new Map(
      definitions.map(({ handle, visibility, isEntry }) => [handle.name, { ...handle, visibility, isEntry }]),
    ),
    packed: new Map(definitions.map(({ handle, packed }) => [handle.name, packed])),
    init: definitions.find(({ handle }) => handle.name === 'init')?.handle,
    dependencies: [...new Set(handles.modules.map(addressOf))].filter((dependency) => dependency !== address),
  };
}

function addressOf(module: string): string {
  return module.split('::')[0] ?? '';
}
