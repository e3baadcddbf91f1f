/**
 * Reads what other modules depend on from a compiled Move module: its datatypes and its public functions. The
 * format is that of Move's binary format, versions 5 to 7 (move-binary-format, `file_format_common.rs`).
 */
import { ENTRY, readBody } from './body.ts';
import { OPCODE } from './opcodes.ts';
import { DECLARED, entry, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/** A module's datatypes and public functions, by name, as text that is equal if and only if they are. */
export interface ModuleInterface {
  readonly address: string;
  readonly name: string;
  readonly datatypes: ReadonlyMap<string, Datatype>;
  readonly functions: ReadonlyMap<string, PublicFunction>;
  /** The functions that a transaction can call: the public ones, and those that are entry functions only. */
  readonly callable: ReadonlyMap<string, PublicFunction>;
  /** Structs of the module that a function makes, without generic ones, by the name of the function. */
  readonly packed: ReadonlyMap<string, readonly string[]>;
  /** Every function of the module. */
  readonly declared: ReadonlyMap<string, DeclaredFunction>;
  /** The function that publishing calls. */
  readonly init: PublicFunction | undefined;
  /** The addresses of the other packages whose modules it names. */
  readonly dependencies: readonly string[];
}

export interface Datatype {
  /** Abilities of the type: bits of copy (1), drop (2), store (4), key (8). */
  readonly abilities: number;
  readonly typeParameters: string;
  /** Fields in order, or variants with theirs. */
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

/** Visibilities by their byte. */
const VISIBILITY: Readonly<Record<number, DeclaredFunction['visibility']>> = {
  0: 'private',
  1: 'public',
  3: 'friend',
};

/**
 * @param self the address that stands in the result for 0x0, which unpublished modules have
 * @throws RangeError, if it is not a module in a version of the format that this reads
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
  const fields = (at: Reader) => at.list(() => `${entry(names, at.index())}: ${type(at)}`).join();
  const structs = tables.read(TABLE.structs, (at) => {
    const handle = entry(datatypes, at.index());
    if (at.byte() !== DECLARED) throw new RangeError('a struct of an unknown kind');
    return { ...handle, layout: `struct {${fields(at)}}` };
  });
  const enums = tables.read(TABLE.enums, (at) => {
    const handle = entry(datatypes, at.index());
    if (at.byte() !== DECLARED) throw new RangeError('an enum of an unknown kind');
    const variants = at.list(() => `${entry(names, at.index())} {${fields(at)}}`);
    return { ...handle, layout: `enum {${variants.join()}}` };
  });
  const definitions = tables.read(TABLE.functionDefinitions, (at) => {
    const handle = entry(functions, at.index());
    const visibility = VISIBILITY[at.byte()];
    if (visibility === undefined) throw new RangeError('a function of an unknown visibility');
    const { flags, instructions } = readBody(at, tables.version);
    const packs = instructions.filter(({ code }) => code === OPCODE.pack);
    const packed = packs.map(({ operand }) => entry(structs, operand).name);
    return { handle, visibility, isEntry: (flags & ENTRY) !== 0, packed };
  });
  const [address = '', name = ''] = entry(handles.modules, tables.self).split('::');
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
