/** Collects the structs that an application signs, and checks whether code can be generated for them. */

import {
  isPlainType,
  type SchemaField,
  type SchemaStruct,
  type SchemaType,
  unwrapType,
} from 'sui-enclave/wire/schema_type';
import { quantity } from 'sui-enclave/wording';
import { GenError } from './errors.ts';

export interface SignedStructs {
  readonly signed: readonly SchemaType[];
  /** All structs, including the signed ones. Each occurs once, after the structs that it contains. */
  readonly all: readonly SchemaStruct[];
}

const STRUCT_NAME = /^[A-Z][A-Za-z0-9_]*$/;
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
/** Maximum length of a name, which Move's virtual machine sets. */
const MAX_NAME_LENGTH = 128;
/** Maximum number of fields of a struct, `max_fields_in_struct` in Sui's protocol configuration. */
const MAX_FIELDS = 32;
/** Names that no field can have: reserved words of Move, and a type whose name no parameter can have. */
const RESERVED_FIELDS = new Set(
  'abort acquires as break const continue copy else enum false for friend fun if let loop match module move mut native public return struct true type use vector while'.split(
    ' ',
  ),
);
/** Names of structs that would hide another type in Move, TypeScript, Python or Go. */
const RESERVED_STRUCTS = new Set([
  'Option',
  'SIGNED',
  'Self',
  'String',
  'Uint8Array',
  'SignedError',
  'SignedMessage',
  'SuiAddress',
  'ReadAnswer',
  'VerifySignature',
  'DecodeMessage',
  'EncodeMessage',
]);

/** Collects and checks the structs of signed types. @throws GenError that names the struct or field */
export function signedStructs(signed: readonly SchemaType[]): SignedStructs {
  if (signed.length === 0) throw new GenError('GEN_NOTHING', 'the application signs nothing');
  const all = new Map<string, SchemaStruct>();
  for (const type of signed) addStruct(all, type);
  requireDistinct(
    'struct',
    [...all.values()].map(({ name }) => snakeCase(name)),
  );
  requireDistinct(
    'signed type',
    signed.map(({ name }) => name),
  );
  return { signed, all: [...all.values()] };
}

function addStruct(all: Map<string, SchemaStruct>, { name, fields }: SchemaStruct): void {
  requireName(name, STRUCT_NAME, RESERVED_STRUCTS, `the struct ${name}`);
  if (fields.length > MAX_FIELDS) {
    throw new GenError(
      'GEN_TYPE',
      `the struct ${name} has ${quantity(fields.length, 'field')}, but Sui publishes no struct with more than ${MAX_FIELDS}: put some of them into a struct of their own`,
    );
  }
  for (const field of fields) {
    const place = `${name}.${field.name}`;
    requireName(field.name, FIELD_NAME, RESERVED_FIELDS, place);
    const { leaf } = unwrapType(field.type);
    if (field.fields) addStruct(all, { name: leaf, fields: field.fields });
    else if (!isPlainType(leaf)) {
      throw new GenError('GEN_TYPE', `${place} has the type ${field.type}, which can't be written in Move`);
    }
  }
  const struct = { name, fields };
  const existingStruct = all.get(name);
  if (existingStruct !== undefined && JSON.stringify(existingStruct.fields) !== JSON.stringify(fields)) {
    throw new GenError('GEN_CONFLICT', `there are two structs ${name}, with different fields`);
  }
  all.set(name, struct);
}

function requireName(name: string, form: RegExp, reserved: ReadonlySet<string>, label: string): void {
  if (!form.test(name) || name.length > MAX_NAME_LENGTH) {
    throw new GenError(
      'GEN_NAME',
      `${label} has a name that is not valid in Move: it must have letters, digits and underscores only`,
    );
  }
  if (reserved.has(name)) {
    throw new GenError(
      'GEN_NAME',
      `${label}: ${name} is a keyword of Move, or a name that the generated code uses for something else`,
    );
  }
}

/** Checks that names are distinct. @throws GenError: GEN_CONFLICT; GEN_NAME for a name that is too long */
export function requireDistinct(label: string, names: readonly string[]): void {
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined)
    throw new GenError('GEN_CONFLICT', `the generated code would have the ${label} ${duplicate} twice`);
  const longName = names.find((name) => name.length > MAX_NAME_LENGTH);
  if (longName !== undefined) {
    throw new GenError(
      'GEN_NAME',
      `the ${label} ${longName} would have more than ${MAX_NAME_LENGTH} characters`,
    );
  }
}

/** Converts `PriceOfPair` to `price_of_pair`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase();
}

/** Returns the type of an item of a vector or an Option. */
export function itemOf({ name, type, fields }: SchemaField): SchemaField {
  return { name, type: type.slice(type.indexOf('<') + 1, -1), ...(fields && { fields }) };
}
