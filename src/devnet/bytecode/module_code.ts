/** Reads the parts of a compiled Move module that are needed to execute it. */
import { type Instruction, NATIVE, readBody } from './body.ts';
import { DECLARED, entry, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/** Code of a module. Its types are texts, as in `ModuleInterface`. */
export interface ModuleCode {
  /** Address and name of the module. */
  readonly module: string;
  readonly functions: ReadonlyMap<string, FunctionCode>;
  /** Called functions, by module and name. Those of the second table have type arguments. */
  readonly calls: readonly Callee[];
  readonly genericCalls: readonly Callee[];
  /** Numbers of fields of structs, and of instances of generic structs. */
  readonly structs: readonly number[];
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
  readonly fields: number;
}

export interface FunctionCode {
  readonly name: string;
  /** Index of the function's definition. */
  readonly index: number;
  readonly isNative: boolean;
  readonly parameters: number;
  /** Number of local variables, parameters included. */
  readonly locals: number;
  readonly instructions: readonly Instruction[];
  readonly jumps: readonly (readonly number[])[];
}

/**
 * @param self address that replaces 0x0 in the result, which unpublished modules have
 * @throws RangeError, if the bytes are not a module in a supported version of the format
 */
export function readCode(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ModuleCode {
  const tables = new Tables(bytes);
  const { modules, functions, signatures, type } = readHandles(tables, self);
  const fieldTypes = (at: Reader) => at.list(() => [at.index(), type(at)]).length;
  const declared = (at: Reader) => {
    at.index();
    if (at.byte() !== DECLARED) throw new RangeError('a datatype of an unknown kind');
  };
  const structs = tables.read(TABLE.structs, (at) => {
    declared(at);
    return fieldTypes(at);
  });
  const instance = (at: Reader): [of: number, types: readonly string[]] => [
    at.index(),
    entry(signatures, at.index()),
  ];
  const structInstances = tables.read(TABLE.structInstances, (at) => entry(structs, instance(at)[0]));
  const fields = tables.read(TABLE.fields, (at) => {
    at.index();
    return at.index();
  });
  const enums = tables.read(TABLE.enums, (at) => {
    declared(at);
    return at.list(() => {
      at.index();
      return fieldTypes(at);
    });
  });
  const enumInstances = tables.read(TABLE.enumInstances, (at) => entry(enums, instance(at)[0]));
  const variant = (table: readonly (readonly number[])[]) => (at: Reader) => {
    const variants = entry(table, at.index());
    const tag = at.index();
    return { tag, fields: entry(variants, tag) };
  };
  const calls = functions.map(({ module, name }) => ({ module, name, types: [] }));
  const definitions = tables.read(TABLE.functionDefinitions, (at) => {
    const { name, parameters } = entry(functions, at.index());
    at.byte();
    const { flags, locals, instructions, jumps } = readBody(at, tables.version);
    const isNative = (flags & NATIVE) !== 0;
    const ownLocals = isNative ? 0 : entry(signatures, locals).length;
    const count = parameters.length;
    return { name, isNative, parameters: count, locals: count + ownLocals, instructions, jumps };
  });
  return {
    module: entry(modules, tables.self),
    functions: new Map(definitions.map((definition, index) => [definition.name, { ...definition, index }])),
    calls,
    genericCalls: tables.read(TABLE.functionInstances, (at) => {
      const [index, types] = instance(at);
      return { ...entry(calls, index), types };
    }),
    structs,
    structInstances,
    fields,
    fieldInstances: tables.read(TABLE.fieldInstances, (at) => entry(fields, instance(at)[0])),
    variants: tables.read(TABLE.variants, variant(enums)),
    variantInstances: tables.read(TABLE.variantInstances, variant(enumInstances)),
    constants: tables.read(TABLE.constants, (at) => ({ type: type(at), bytes: at.take(at.index()) })),
  };
}
