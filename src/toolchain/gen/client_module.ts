/** Generates the signed types for a dapp: a module whose types are arguments of `sui-enclave/client`. */
import { type SchemaField, type SchemaStruct, unwrapType } from 'sui-enclave/wire/schema_type';
import { itemOf, type SignedStructs } from './signed_structs.ts';

const MAX_LINE = 110;
/** Module that the generated module imports. */
const CLIENT = 'sui-enclave/client';
/** Codecs of `sui-enclave/client` and the types of their values, by the name of the type in Move. */
const PLAIN: ReadonlyMap<string, readonly [codec: string, value: string]> = new Map([
  ['bool', ['bool', 'boolean']],
  ['u8', ['u8', 'number']],
  ['u16', ['u16', 'number']],
  ['u32', ['u32', 'number']],
  ['u64', ['u64', 'bigint']],
  ['u128', ['u128', 'bigint']],
  ['u256', ['u256', 'bigint']],
  ['address', ['address', 'string']],
  ['String', ['text', 'string']],
]);
const BYTES = 'vector<u8>';

/** Returns the content of `client.ts`, without its header. */
export function clientModule({ signed, all }: SignedStructs): string {
  const intents = new Map(signed.map(({ name, intent }) => [name, intent]));
  const used = new Set(['signedType', 'struct']);
  const formatCodec = (field: SchemaField): string => {
    const { type, fields } = field;
    const { wrappers, leaf } = unwrapType(type);
    const [wrapper] = wrappers;
    const use = (name: string) => {
      used.add(name);
      return name;
    };
    if (type === BYTES) return use('bytes');
    if (wrapper !== undefined) return `${use(wrapper.toLowerCase())}(${formatCodec(itemOf(field))})`;
    if (fields !== undefined) return intents.has(leaf) ? `${leaf}.payload` : leaf;
    return use(PLAIN.get(type)?.[0] ?? type);
  };
  const declarations = all.map((struct) => formatDeclaration(struct, intents.get(struct.name), formatCodec));
  return `${formatImport([...used])}\n\n${declarations.join('\n')}`;
}

function formatDeclaration(
  { name, fields }: SchemaStruct,
  intent: number | undefined,
  formatCodec: (field: SchemaField) => string,
): string {
  const codecs = (indent: string) =>
    fields.map((field) => `${indent}${field.name}: ${formatCodec(field)},\n`).join('');
  const constant =
    intent === undefined
      ? `export const ${name} = struct('${name}', {\n${codecs('  ')}});\n`
      : `/** Signed with the intent ${intent}. */\nexport const ${name} = signedType(\n  ${intent},\n  struct('${name}', {\n${codecs('    ')}  }),\n);\n`;
  const members = fields.map((field) => `  readonly ${field.name}: ${parsedType(field)};\n`).join('');
  return `${constant}\nexport interface ${name} {\n${members}}\n`;
}

/** Returns the TypeScript type of a parsed field. */
function parsedType(field: SchemaField): string {
  const { type } = field;
  const { wrappers, leaf } = unwrapType(type);
  const [wrapper] = wrappers;
  if (type === BYTES) return 'Uint8Array';
  if (wrapper === 'Option') return `${parsedType(itemOf(field))} | null`;
  if (wrapper === 'vector') {
    const element = parsedType(itemOf(field));
    return `readonly ${/[ ]/.test(element) ? `(${element})` : element}[]`;
  }
  return PLAIN.get(type)?.[1] ?? leaf;
}

/** Formats the import with its names in the order that Biome and people expect: u8 before u16. */
function formatImport(names: readonly string[]): string {
  const sorted = [...names].sort(new Intl.Collator('en', { numeric: true }).compare);
  const from = `from '${CLIENT}';`;
  const flat = `import { ${sorted.join(', ')} } ${from}`;
  return flat.length <= MAX_LINE
    ? flat
    : `import {\n${sorted.map((name) => `  ${name},\n`).join('')}} ${from}`;
}
