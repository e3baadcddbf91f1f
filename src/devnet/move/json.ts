/**
 * Represents Move values in JSON in the way of full nodes, by the rules that Sui's reference gives for
 * `MoveValue.json`.
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

/** Structs that are written as a text, by their full names. */
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

/** @throws TypeError for a type that no module declares; RangeError for an unknown variant */
export function toGrpcJson(value: Value, type: MoveType, datatypes: Datatypes): GrpcJson {
  if (value instanceof Int) {
    return value.bits > NUMBER_BITS ? string(String(value.value)) : number(Number(value.value));
  }
  if (typeof value === 'string') return string(value);
  if (typeof value === 'boolean') return { kind: { oneofKind: 'boolValue', boolValue: value } };
  if (type.kind === 'vector') {
    if (isByte(type.of)) return string(toBase64(toBytes(value)));
    return list(composite(value).items.map((item) => toGrpcJson(item, type.of, datatypes)));
  }
  if (type.kind === 'struct') return structJson(composite(value), type, datatypes);
  throw new TypeError('the value is not of its type');
}

function structJson(value: Composite, type: Struct, datatypes: Datatypes): GrpcJson {
  const name = `${type.address}::${type.module}::${type.name}`;
  const write = TEXTS.get(name);
  if (write !== undefined) return string(write(value));
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
  const head: [string, GrpcJson][] = variant === undefined ? [] : [['@variant', string(variant.name)]];
  return {
    kind: { oneofKind: 'structValue', structValue: { fields: Object.fromEntries([...head, ...fields]) } },
  };
}

/** Returns the text in a struct `String`. */
function formatText(value: Value | undefined): string {
  return new TextDecoder().decode(toBytes(composite(composite(value).items[0])));
}

const NULL: GrpcJson = { kind: { oneofKind: 'nullValue', nullValue: 0 } };

function string(stringValue: string): GrpcJson {
  return { kind: { oneofKind: 'stringValue', stringValue } };
}

function number(numberValue: number): GrpcJson {
  return { kind: { oneofKind: 'numberValue', numberValue } };
}

function list(values: GrpcJson[]): GrpcJson {
  return { kind: { oneofKind: 'listValue', listValue: { values } } };
}
