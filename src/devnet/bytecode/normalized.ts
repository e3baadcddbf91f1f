/** What a compiled Move module declares, as text that does not depend on the order of its tables. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { type Instruction, readBody } from './body.ts';
import { readModule } from './module_bytecode.ts';
import { DECLARED, entry, type Handles, type Reader, readHandles, TABLE, Tables } from './tables.ts';

/**
 * The datatypes and functions of a module, by a text that names them, each as text that is equal if and only if it is
 * declared in the same way and, of a function, does the same. The policies of upgrades that are stricter than
 * `compatible` compare these (`inclusion_mode.rs` of move-binary-format).
 *
 * @param self the address that stands in the result for 0x0, which unpublished modules have
 * @throws RangeError, if it is not a module in a version of the format that this reads
 */
export function declarationsOf(bytes: Uint8Array, self?: string): ReadonlyMap<string, string> {
  const { name: module, datatypes, declared } = readModule(bytes, self);
  const bodies = bodiesOf(bytes, self);
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

/** Of functions, by name. */
function bodiesOf(bytes: Uint8Array, self = `0x${'0'.repeat(64)}`): ReadonlyMap<string, string> {
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

/** Names what the operand of an instruction points to. */
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
  const generic = (of: readonly string[]) => (at: Reader) => entry(of, at.index()) + types(at);
  const variant = (of: readonly string[]) => (at: Reader) => `${entry(of, at.index())}#${at.index()}`;
  const names: readonly (readonly [codes: readonly number[], named: readonly string[]])[] = [
    [[0x07], tables.read(TABLE.constants, (at) => `${type(at)} ${bytesToHex(at.take(at.index()))}`)],
    [[0x0f, 0x10], fields],
    [[0x36, 0x37], tables.read(TABLE.fieldInstances, generic(fields))],
    [[0x11], calls],
    [[0x38], tables.read(TABLE.functionInstances, generic(calls))],
    [[0x12, 0x13], structs],
    [[0x39, 0x3a], structInstances],
    [[0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47], signatures.map((signature) => signature.join())],
    [[0x4e, 0x50, 0x51, 0x52], tables.read(TABLE.variants, variant(enums))],
    [[0x4f, 0x53, 0x54, 0x55], tables.read(TABLE.variantInstances, variant(enumInstances))],
  ];
  const byCode = new Map(names.flatMap(([codes, named]) => codes.map((code) => [code, named] as const)));
  return ({ code, operand }) => {
    const named = byCode.get(code);
    return named === undefined ? String(operand) : entry(named, operand);
  };
}
