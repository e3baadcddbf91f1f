/** Generates the signed types for Move: a module, and tests of its bytes. */
import {
  type SchemaField,
  type SchemaStruct,
  type SchemaType,
  unwrapType,
} from 'sui-enclave/wire/schema_type';
import type { Vector } from './samples.ts';
import { itemOf, requireDistinct, type SignedStructs, snakeCase } from './signed_structs.ts';

/** The name of the module in the author's package. */
const MODULE = 'signed';
/** Maximum length of a line in Move sources, in characters. */
const MAX_LINE = 100;

/**
 * Returns the content of `sources/signed.move`, without its header.
 *
 * @throws GenError: GEN_CONFLICT, if functions of two structs would have the same name
 */
export function moveModule(packageName: string, { signed, all }: SignedStructs): string {
  requireDistinct('function of Move', [...signed.map(intentFunction), ...all.flatMap(formatFunctions)]);
  const usesText = all.some(({ fields }) => fields.some(({ type }) => unwrapType(type).leaf === 'String'));
  return [
    `/// The types that the application signs, with the same fields in the same order as in its app.ts.\nmodule ${packageName}::${MODULE};\n`,
    ...(usesText ? ['use std::string::String;\n'] : []),
    ...(all.length > 0 ? [`${all.flatMap(useFuns).join('\n')}\n`] : []),
    `${signed.map(intentConstant).join('\n')}\n`,
    ...all.map(structText),
    ...signed.map(intentText),
    ...all.map(constructorText),
    ...all.flatMap(accessorTexts),
  ].join('\n');
}

/** Returns the content of `tests/signed_vectors.move`, without its header. */
export function moveTests(
  packageName: string,
  { signed }: SignedStructs,
  vectors: readonly Vector[],
): string {
  const types = new Map(signed.map((type) => [type.name, type]));
  const tests = vectors.flatMap((vector) => {
    const type = types.get(vector.type);
    return type === undefined ? [] : [testText(vector, type)];
  });
  return [
    `/// Checks that Move encodes the signed types to the same bytes as vectors.json.\n#[test_only]\nmodule ${packageName}::${MODULE}_vectors;\n`,
    `use enclave::enclave;\nuse ${packageName}::${MODULE};\nuse std::unit_test::assert_eq;\n`,
    tests.join('\n'),
  ].join('\n');
}

const intentFunction = ({ name }: SchemaType) => `intent_of_${snakeCase(name)}`;
const newFunction = (struct: string) => `new_${snakeCase(struct)}`;
const accessor = (struct: string, field: string) => `${snakeCase(struct)}_${field}`;
const formatConstant = ({ name }: SchemaType) => `${snakeCase(name).toUpperCase()}_INTENT`;

function formatFunctions({ name, fields }: SchemaStruct): string[] {
  return [newFunction(name), ...fields.map((field) => accessor(name, field.name))];
}

function useFuns({ name, fields }: SchemaStruct): string[] {
  return fields.map((field) => `public use fun ${accessor(name, field.name)} as ${name}.${field.name};`);
}

function intentConstant(type: SchemaType): string {
  return `/// The intent code of \`${type.name}\`.\nconst ${formatConstant(type)}: u8 = ${type.intent};`;
}

function structText({ name, fields }: SchemaStruct): string {
  const lines = fields.map((field) => `    ${field.name}: ${field.type},\n`);
  return `public struct ${name} has copy, drop {\n${lines.join('')}}\n`;
}

function intentText(type: SchemaType): string {
  return `/// Returns the intent code, which \`enclave::assert_signed\` requires.\npublic fun ${intentFunction(type)}(): u8 {\n    ${formatConstant(type)}\n}\n`;
}

/**
 * Returns a constructor that only the author's package can call. Other packages therefore get such values
 * only from code of that package, and rely on its checks.
 */
function constructorText({ name, fields }: SchemaStruct): string {
  const head = `public(package) fun ${newFunction(name)}`;
  const parameters = fields.map((field) => `${field.name}: ${field.type}`);
  const flat = `${head}(${parameters.join(', ')}): ${name} {`;
  const lines = parameters.map((parameter) => `    ${parameter},\n`);
  const signature = flat.length <= MAX_LINE ? flat : `${head}(\n${lines.join('')}): ${name} {`;
  const names = fields.map((field) => field.name);
  const flatBody = `    ${name} { ${names.join(', ')} }`;
  const body =
    flatBody.length <= MAX_LINE
      ? flatBody
      : `    ${name} {\n${names.map((field) => `        ${field},\n`).join('')}    }`;
  return `/// Creates a value. No signature has been verified yet.\n${signature}\n${body}\n}\n`;
}

function accessorTexts({ name, fields }: SchemaStruct): string[] {
  return fields.map((field) => {
    const byValue = unwrapType(field.type).wrappers.length === 0 && !field.fields && field.type !== 'String';
    const [returned, body] = byValue
      ? [field.type, `self.${field.name}`]
      : [`&${field.type}`, `&self.${field.name}`];
    return `public fun ${accessor(name, field.name)}(self: &${name}): ${returned} {\n    ${body}\n}\n`;
  });
}

function testText({ name, timestamp_ms, payload, bytes }: Vector, type: SchemaType): string {
  const argumentLines = formatArguments(type, payload).map((argument) => `        ${argument},\n`);
  return `#[test]
fun ${name}() {
    let value = ${MODULE}::${newFunction(type.name)}(
${argumentLines.join('')}    );
    assert_eq!(
        enclave::signed_bytes_for_testing(${MODULE}::${intentFunction(type)}(), ${timestamp_ms}, value),
        x"${bytes}",
    );
}
`;
}

function formatArguments({ fields }: SchemaStruct, value: unknown): string[] {
  const values = new Map(Object.entries(Object(value)));
  return fields.map((field) => formatExpression(field, values.get(field.name)));
}

/** Formats a value as an expression in Move. @param value of the field's type, as `samples.ts` makes it */
function formatExpression(field: SchemaField, value: unknown): string {
  const { type, fields } = field;
  const { wrappers, leaf } = unwrapType(type);
  const [wrapper] = wrappers;
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (type === 'vector<u8>') return `x"${Buffer.from(items.map(Number)).toString('hex')}"`;
  if (wrapper === 'Option' && value === null) return 'option::none()';
  if (wrapper === 'Option') return `option::some(${formatExpression(itemOf(field), value)})`;
  if (wrapper === 'vector') {
    return `vector[${items.map((element) => formatExpression(itemOf(field), element)).join(', ')}]`;
  }
  if (fields !== undefined) {
    return `${MODULE}::${newFunction(leaf)}(${formatArguments({ name: leaf, fields }, value).join(', ')})`;
  }
  if (type === 'String') return `x"${Buffer.from(String(value)).toString('hex')}".to_string()`;
  return type === 'address' ? `@${value}` : String(value);
}
