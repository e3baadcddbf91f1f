/**
 * Describes the declarations of a compiled Move module in texts that do not depend on the order of its
 * tables.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { type Instruction, readBody } from './body.ts';
import { readModule } from './module_bytecode.ts';
import { OPCODE } from './opcodes.ts';
import { DECLARED, getEntry, type Handles, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/** Opcodes whose operands are types of vector elements. */
const VECTOR = [
  OPCODE.vecPack,
  OPCODE.vecUnpack,
  OPCODE.vecLen,
  OPCODE.vecImmBorrow,
  OPCODE.vecMutBorrow,
  OPCODE.vecPushBack,
  OPCODE.vecPopBack,
  OPCODE.vecSwap,
];
const VARIANT = [
  OPCODE.packVariant,
  OPCODE.unpackVariant,
  OPCODE.unpackVariantImmRef,
  OPCODE.unpackVariantMutRef,
];
const GENERIC_VARIANT = [
  OPCODE.packVariantGeneric,
  OPCODE.unpackVariantGeneric,
  OPCODE.unpackVariantGenericImmRef,
  OPCODE.unpackVariantGenericMutRef,
];

/**
 * Returns a text for each datatype and function of a module, by its kind and name. Two texts are equal
 * if and only if the declarations are equal and, for functions, the bodies too. Upgrade policies that are
 * stricter than `compatible` compare these texts (`inclusion_mode.rs` of move-binary-format).
 *
 * @param self address that replaces 0x0, which is the address of unpublished modules
 * @throws RangeError, if the bytes are not a module in a supported version of the format
 */
export function listDeclarations(bytes: Uint8Array, self?: string): ReadonlyMap<string, string> {
  const { name: module, datatypes, declared } = readModule(bytes, self);
  const bodies = listBodies(bytes, self);
  const texts = new Map([[`module ${module}`, '']]);
  for (const [name, { abilities, typeParameters, layout }] of datatypes) {
    texts.set(`type ${module}::${name}`, `${abilities} <${typeParameters}> ${layout}`);
  }
  for (const [name, { constraints, parameters, returns, visibility, isEntry }] of declared) {
    const head = `${visibility} ${isEntry} <${constraints.join()}> (${parameters}): (${returns})`;
    texts.set(`function ${module}::${name}`, `${head} ${bodies.get(name) ?? ''}`);
  }
  return texts;
}

/** Returns the bodies of functions by name. */
function listBodies(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ReadonlyMap<string, string> {
  const tables = new Tables(bytes);
  const handles = readHandles(tables, self);
  const formatOperand = createOperandFormatter(tables, handles);
  const definitions = tables.read(TABLE.functionDefinitions, (reader) => {
    const { name } = getEntry(handles.functions, reader.index());
    reader.byte();
    const { locals, instructions, jumps, flags } = readBody(reader, tables.version);
    const steps = instructions.map((instruction) => {
      const { code, value } = instruction;
      return `${code} ${formatOperand(instruction)} ${value}`;
    });
    const types = instructions.length === 0 ? [] : getEntry(handles.signatures, locals);
    return [name, `${flags} [${types.join()}] ${steps.join('; ')} ${JSON.stringify(jumps)}`] as const;
  });
  return new Map(definitions);
}

/** Returns a function that formats an instruction's operand: the table entry that it names, or a number. */
function createOperandFormatter(
  tables: Tables,
  { functions, signatures, datatypes, type }: Handles,
): (instruction: Instruction) => string {
  const types = (reader: Reader) => `<${getEntry(signatures, reader.index()).join()}>`;
  const fieldList = (reader: Reader) => reader.list(() => [reader.index(), type(reader)]);
  const structs = tables.read(TABLE.structs, (reader) => {
    const { name } = getEntry(datatypes, reader.index());
    if (reader.byte() !== DECLARED) throw new RangeError('a struct has an unknown kind');
    fieldList(reader);
    return name;
  });
  const enums = tables.read(TABLE.enums, (reader) => {
    const { name } = getEntry(datatypes, reader.index());
    reader.byte();
    reader.list(() => [reader.index(), fieldList(reader)]);
    return name;
  });
  const structInstances = tables.read(
    TABLE.structInstances,
    (reader) => getEntry(structs, reader.index()) + types(reader),
  );
  const enumInstances = tables.read(
    TABLE.enumInstances,
    (reader) => getEntry(enums, reader.index()) + types(reader),
  );
  const fields = tables.read(
    TABLE.fields,
    (reader) => `${getEntry(structs, reader.index())}.${reader.index()}`,
  );
  const calls = functions.map(({ module, name }) => `${module}::${name}`);
  const generic = (table: readonly string[]) => (reader: Reader) =>
    getEntry(table, reader.index()) + types(reader);
  const variant = (table: readonly string[]) => (reader: Reader) =>
    `${getEntry(table, reader.index())}#${reader.index()}`;
  const fieldInstances = tables.read(TABLE.fieldInstances, generic(fields));
  const names: readonly (readonly [codes: readonly number[], table: readonly string[]])[] = [
    [
      [OPCODE.ldConst],
      tables.read(TABLE.constants, (reader) => `${type(reader)} ${bytesToHex(reader.take(reader.index()))}`),
    ],
    [[OPCODE.mutBorrowField, OPCODE.immBorrowField], fields],
    [[OPCODE.mutBorrowFieldGeneric, OPCODE.immBorrowFieldGeneric], fieldInstances],
    [[OPCODE.call], calls],
    [[OPCODE.callGeneric], tables.read(TABLE.functionInstances, generic(calls))],
    [[OPCODE.pack, OPCODE.unpack], structs],
    [[OPCODE.packGeneric, OPCODE.unpackGeneric], structInstances],
    [VECTOR, signatures.map((signature) => signature.join())],
    [VARIANT, tables.read(TABLE.variants, variant(enums))],
    [GENERIC_VARIANT, tables.read(TABLE.variantInstances, variant(enumInstances))],
  ];
  const byCode = new Map(names.flatMap(([codes, table]) => codes.map((code) => [code, table] as const)));
  return ({ code, operand }) => {
    const table = byCode.get(code);
    return table === undefined ? String(operand) : getEntry(table, operand);
  };
}
