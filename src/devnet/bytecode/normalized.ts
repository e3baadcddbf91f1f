/**
 * Describes the declarations of a compiled Move module in texts that do not depend on the order of its
 * tables.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { type Instruction, readBody } from './body.ts';
import { readModule } from './module_bytecode.ts';
import { OPCODE } from './opcodes.ts';
import { DECLARED, entry, type Handles, type Reader, readHandles, TABLE, Tables } from './tables.ts';

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
 * Returns texts for the datatypes and functions of a module, by a text that names each. Two texts are equal
 * if and only if the declarations are equal and, for functions, the bodies too. Upgrade policies that are
 * stricter than `compatible` compare these texts (`inclusion_mode.rs` of move-binary-format).
 *
 * @param self address that replaces 0x0 in the result, which unpublished modules have
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
  const nameOperand = operandNames(tables, handles);
  const definitions = tables.read(TABLE.functionDefinitions, (at) => {
    const { name } = entry(handles.functions, at.index());
    at.byte();
    const { locals, instructions, jumps, flags } = readBody(at, tables.version);
    const steps = instructions.map((instruction) => {
      const { code, value } = instruction;
      return `${code} ${nameOperand(instruction)} ${value}`;
    });
    const types = instructions.length === 0 ? [] : entry(handles.signatures, locals);
    return [name, `${flags} [${types.join()}] ${steps.join('; ')} ${JSON.stringify(jumps)}`] as const;
  });
  return new Map(definitions);
}

/** Returns a function that gives the name of an instruction operand's target. */
function operandNames(
  tables: Tables,
  { functions, signatures, datatypes, type }: Handles,
): (instruction: Instruction) => string {
  const types = (at: Reader) => `<${entry(signatures, at.index()).join()}>`;
  const fieldList = (at: Reader) => at.list(() => [at.index(), type(at)]);
  const structs = tables.read(TABLE.structs, (at) => {
    const { name } = entry(datatypes, at.index());
    if (at.byte() !== DECLARED) throw new RangeError('a struct of an unknown kind');
    fieldList(at);
    return name;
  });
  const enums = tables.read(TABLE.enums, (at) => {
    const { name } = entry(datatypes, at.index());
    at.byte();
    at.list(() => [at.index(), fieldList(at)]);
    return name;
  });
  const structInstances = tables.read(TABLE.structInstances, (at) => entry(structs, at.index()) + types(at));
  const enumInstances = tables.read(TABLE.enumInstances, (at) => entry(enums, at.index()) + types(at));
  const fields = tables.read(TABLE.fields, (at) => `${entry(structs, at.index())}.${at.index()}`);
  const calls = functions.map(({ module, name }) => `${module}::${name}`);
  const generic = (table: readonly string[]) => (at: Reader) => entry(table, at.index()) + types(at);
  const variant = (table: readonly string[]) => (at: Reader) => `${entry(table, at.index())}#${at.index()}`;
  const fieldInstances = tables.read(TABLE.fieldInstances, generic(fields));
  const names: readonly (readonly [codes: readonly number[], table: readonly string[]])[] = [
    [
      [OPCODE.ldConst],
      tables.read(TABLE.constants, (at) => `${type(at)} ${bytesToHex(at.take(at.index()))}`),
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
    return table === undefined ? String(operand) : entry(table, operand);
  };
}
