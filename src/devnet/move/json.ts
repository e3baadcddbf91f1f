/**
 * Represents Move values in JSON as full nodes do, by the rules for `MoveValue.json` in Sui's reference.
 */
import type { GrpcTypes } from '@mysten/sui/grpc';
import { toBase64 } from '@mysten/sui/utils';
import { FRAMEWORK, STANDARD_LIBRARY } from '../packages.ts';
import { type Datatypes, instantiate, type MoveType, type Struct } from './types.ts';
import {
  type Composite,
  composite,
  fieldsOf,
  Int,
  idOf,
  int,
  isByte,
  toBytes,
  type Value,
} from './values.ts';

/** JSON in the form of gRPC: `google.protobuf.Value`. */
export type GrpcJson = NonNullable<GrpcTypes.Object['json']>;

/** Functions that format structs as texts, by the full name of the struct. */
const TEXTS = new Map<string, (value: Value) => string>([
  [`${FRAMEWORK}::object::UID`, idOf],
  [`${FRAMEWORK}::object::ID`, idOf],
  [`${FRAMEWORK}::balance::Balance`, (value) => String(int(composite(value).items[0]).value)],
  [`${FRAMEWORK}::url::Url`, (value) => formatText(composite(value).items[0])],
  [`${STANDARD_LIBRARY}::ascii::String`, formatText],
  [`${STANDARD_LIBRARY}::string::String`, formatText],
]);
const OPTION = `${STANDARD_LIBRARY}::option::Option`;
/** Widest integers, in bits, that JSON's numbers represent exactly. */
const NUMBER_BITS = 32;

/** Converts a value to JSON. @throws TypeError for an undeclared type; RangeError for an unknown variant */
export function toGrpcJson(value: Value, type: MoveType, datatypes: Datatypes): GrpcJson {
  if (value instanceof Int) {
    return value.bits > NUMBER_BITS ? createString(String(value.value)) : createNumber(Number(value.value));
  }
  if (typeof value === 'string') return createString(value);
  if (typeof value === 'boolean') return { kind: { oneofKind: 'boolValue', boolValue: value } };
  if (type.kind === 'vector') {
    if (isByte(type.of)) return createString(toBase64(toBytes(value)));
    return createList(composite(value).items.map((element) => toGrpcJson(element, type.of, datatypes)));
  }
  if (type.kind === 'struct') return structToJson(composite(value), type, datatypes);
  throw new TypeError('the value is not of its type');
}

function structToJson(value: Composite, type: Struct, datatypes: Datatypes): GrpcJson {
  const name = `${type.address}::${type.module}::${type.name}`;
  const formatStruct = TEXTS.get(name);
  if (formatStruct !== undefined) return createString(formatStruct(value));
  if (name === OPTION) {
    const [content] = composite(value.items[0]).items;
    const [contentType] = type.args;
    if (content === undefined || contentType === undefined) return NULL;
    return toGrpcJson(content, contentType, datatypes);
  }
  const layout = datatypes.findLayout(type);
  const fields = fieldsOf(layout, value.tag).map((field, index): [string, GrpcJson] => {
    const content = value.items[index] as Value;
    return [field.name, toGrpcJson(content, instantiate(field.type, type.args), datatypes)];
  });
  const variant = layout.kind === 'enum' ? layout.variants[value.tag] : undefined;
  const head: [string, GrpcJson][] = variant === undefined ? [] : [['@variant', createString(variant.name)]];
  return {
    kind: { oneofKind: 'structValue', structValue: { fields: Object.fromEntries([...head, ...fields]) } },
  };
}

/** Returns the text in a struct `String`. */
function formatText(value: Value | undefined): string {
  return new TextDecoder().decode(toBytes(composite(composite(value).items[0])));
}

const NULL: GrpcJson = { kind: { oneofKind: 'nullValue', nullValue: 0 } };

function createString(stringValue: string): GrpcJson {
  return { kind: { oneofKind: 'stringValue', stringValue } };
}

function createNumber(numberValue: number): GrpcJson {
  return { kind: { oneofKind: 'numberValue', numberValue } };
}

function createList(values: GrpcJson[]): GrpcJson {
  return { kind: { oneofKind: 'listValue', listValue: { values } } };
}
