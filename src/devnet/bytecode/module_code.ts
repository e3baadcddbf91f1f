/** Reads the parts of a compiled Move module that are needed to execute it. */
import { type Instruction, NATIVE, readBody } from './body.ts';
import { DECLARED, getEntry, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/** Code of a module. Its types are texts, as in `ModuleInterface`. */
export interface ModuleCode {
  /** Address and name of the module. */
  readonly module: string;
  readonly functions: ReadonlyMap<string, FunctionCode>;
  /** Functions that the module calls or declares, without type arguments. */
  readonly calls: readonly Callee[];
  /** Functions that the module calls with type arguments. */
  readonly genericCalls: readonly Callee[];
  /** Number of fields of each struct. */
  readonly structs: readonly number[];
  /** Number of fields of each instance of a generic struct. */
  readonly structInstances: readonly number[];
  /** Index of each field in its struct. */
  readonly fields: readonly number[];
  readonly fieldInstances: readonly number[];
  readonly variants: readonly Variant[];
  readonly variantInstances: readonly Variant[];
  readonly constants: readonly { readonly type: string; readonly bytes: Uint8Array }[];
}

export interface Callee {
  readonly module: string;
  readonly name: string;
  readonly types: readonly string[];
}

export interface Variant {
  readonly tag: number;
  /** Number of fields. */
  readonly fields: number;
}

export interface FunctionCode {
  readonly name: string;
  /** Index of the function's definition. */
  readonly index: number;
  readonly isNative: boolean;
  /** Number of parameters. */
  readonly parameters: number;
  /** Number of local variables, parameters included. */
  readonly locals: number;
  readonly instructions: readonly Instruction[];
  readonly jumps: readonly (readonly number[])[];
}

/**
 * Reads the code of a module.
 *
 * @param self address that replaces 0x0, which is the address of unpublished modules
 * @throws RangeError, if the bytes are not a module in a supported version of the format
 */
export function readCode(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ModuleCode {
  const tables = new Tables(bytes);
  const { modules, functions, signatures, type } = readHandles(tables, self);
  const countFields = (reader: Reader) => reader.list(() => [reader.index(), type(reader)]).length;
  const skipHandle = (reader: Reader) => {
    reader.index();
    if (reader.byte() !== DECLARED) throw new RangeError('a datatype has an unknown kind');
  };
  const structs = tables.read(TABLE.structs, (reader) => {
    skipHandle(reader);
    return countFields(reader);
  });
  const readInstance = (reader: Reader): [of: number, types: readonly string[]] => [
    reader.index(),
    getEntry(signatures, reader.index()),
  ];
  const structInstances = tables.read(TABLE.structInstances, (reader) =>
    getEntry(structs, readInstance(reader)[0]),
  );
  const fields = tables.read(TABLE.fields, (reader) => {
    reader.index();
    return reader.index();
  });
  const enums = tables.read(TABLE.enums, (reader) => {
    skipHandle(reader);
    return reader.list(() => {
      reader.index();
      return countFields(reader);
    });
  });
  const enumInstances = tables.read(TABLE.enumInstances, (reader) =>
    getEntry(enums, readInstance(reader)[0]),
  );
  const variantReader = (table: readonly (readonly number[])[]) => (reader: Reader) => {
    const variants = getEntry(table, reader.index());
    const tag = reader.index();
    return { tag, fields: getEntry(variants, tag) };
  };
  const calls = functions.map(({ module, name }) => ({ module, name, types: [] }));
  const definitions = tables.read(TABLE.functionDefinitions, (reader) => {
    const { name, parameters } = getEntry(functions, reader.index());
    reader.byte();
    const { flags, locals, instructions, jumps } = readBody(reader, tables.version);
    const isNative = (flags & NATIVE) !== 0;
    const ownLocals = isNative ? 0 : getEntry(signatures, locals).length;
    const count = parameters.length;
    return { name, isNative, parameters: count, locals: count + ownLocals, instructions, jumps };
  });
  return {
    module: getEntry(modules, tables.self),
    functions: new Map(definitions.map((definition, index) => [definition.name, { ...definition, index }])),
    calls,
    genericCalls: tables.read(TABLE.functionInstances, (reader) => {
      const [index, types] = readInstance(reader);
      return { ...getEntry(calls, index), types };
    }),
    structs,
    structInstances,
    fields,
    fieldInstances: tables.read(TABLE.fieldInstances, (reader) => getEntry(fields, readInstance(reader)[0])),
    variants: tables.read(TABLE.variants, variantReader(enums)),
    variantInstances: tables.read(TABLE.variantInstances, variantReader(enumInstances)),
    constants: tables.read(TABLE.constants, (reader) => ({
      type: type(reader),
      bytes: reader.take(reader.index()),
    })),
  };
}
