import { GrpcTypes } from '@mysten/sui/grpc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { type OnChainStruct, type OnChainType, structDifference } from '../../../../src/library/sui/index.ts';
import {
  type SchemaField,
  type SchemaStruct,
  toSchemaType,
  unwrapType,
} from '../../../../src/library/wire/schema_type.ts';
import { randomMessages } from '../wire/random_types.ts';

const { OpenSignatureBody_Type: Type, DatatypeDescriptor_DatatypeKind: Kind } = GrpcTypes;
const PACKAGE = `0x${'ab'.repeat(32)}`;
const PLAIN: Readonly<Record<string, GrpcTypes.OpenSignatureBody_Type>> = {
  address: Type.ADDRESS,
  bool: Type.BOOL,
  u8: Type.U8,
  u16: Type.U16,
  u32: Type.U32,
  u64: Type.U64,
  u128: Type.U128,
  u256: Type.U256,
};

const plain = (type: GrpcTypes.OpenSignatureBody_Type): OnChainType => ({
  type,
  typeParameterInstantiation: [],
});
const createVector = (element: OnChainType): OnChainType => ({
  type: Type.VECTOR,
  typeParameterInstantiation: [element],
});
const datatype = (typeName: string, ...typeArguments: OnChainType[]): OnChainType => ({
  type: Type.DATATYPE,
  typeName,
  typeParameterInstantiation: typeArguments,
});
const padAddress = (short: string) =>
  short.replace(/^0x(\d)/, (_, digit) => `0x${String(digit).padStart(64, '0')}`);
const STRING = datatype(padAddress('0x1::string::String'));

function onChainType(type: string): OnChainType {
  const [, wrapper, inner] = /^(vector|Option)<(.*)>$/.exec(type) ?? [];
  if (inner !== undefined) {
    const element = onChainType(inner);
    return wrapper === 'vector'
      ? createVector(element)
      : datatype(padAddress('0x1::option::Option'), element);
  }
  const number = PLAIN[type];
  if (number !== undefined) return plain(number);
  return type === 'String' ? STRING : datatype(`${PACKAGE}::app::${type}`);
}

/** Returns the struct on chain that equals a signed type. */
function createOnChainStruct({ name, fields }: SchemaStruct): OnChainStruct {
  return {
    name,
    kind: Kind.STRUCT,
    typeParameters: [],
    fields: fields.map(({ name: field, type }, position) => ({
      name: field,
      position,
      type: onChainType(type),
    })),
  };
}

function listNested(fields: readonly SchemaField[]): SchemaStruct[] {
  return fields.flatMap(({ type, fields: inner }) =>
    inner === undefined ? [] : [{ name: unwrapType(type).leaf, fields: inner }, ...listNested(inner)],
  );
}

const WEATHER = toSchemaType(WeatherResponse);
const [location, temperature] = createOnChainStruct(WEATHER).fields;
if (location === undefined || temperature === undefined) throw new Error('no fields');

test('a struct is accepted as gRPC returns it', () => {
  const descriptor: GrpcTypes.DatatypeDescriptor = {
    name: 'WeatherResponse',
    abilities: [],
    typeParameters: [],
    kind: Kind.STRUCT,
    fields: [
      {
        name: 'location',
        position: 0,
        type: { type: Type.DATATYPE, typeName: '0x1::string::String', typeParameterInstantiation: [] },
      },
      { name: 'temperature', position: 1, type: { type: Type.U64, typeParameterInstantiation: [] } },
    ],
    variants: [],
  };
  expect(structDifference(WEATHER, descriptor)).toBeUndefined();
});

test('a struct on chain equals the signed type with the same fields, for random signed types', () => {
  fc.assert(
    fc.property(randomMessages, ({ signed }) => {
      const type = toSchemaType(signed);
      const nested = listNested(type.fields).map(createOnChainStruct);
      expect(structDifference(type, createOnChainStruct(type), nested)).toBeUndefined();
      if (nested.length > 0) {
        expect(structDifference(type, createOnChainStruct(type))).toMatch(/ on chain was not read$/);
      }
    }),
  );
});

test('a struct with any change to a field, at any depth, differs', () => {
  const changes = fc.record({
    choice: fc.nat(),
    kind: fc.constantFrom('name', 'type', 'missing', 'more', 'order'),
  });
  fc.assert(
    fc.property(randomMessages, changes, ({ signed }, { choice, kind }) => {
      const type = toSchemaType(signed);
      const all = [type, ...listNested(type.fields)].map(createOnChainStruct);
      const changed = all.map((struct, index) =>
        index === choice % all.length ? change(struct, choice, kind) : struct,
      );
      const [first, ...nested] = changed;
      if (first === undefined || changed[choice % all.length] === all[choice % all.length]) return;
      expect(structDifference(type, first, nested)).toMatch(/./);
    }),
    { numRuns: 500 },
  );
});

function change(struct: OnChainStruct, choice: number, kind: string): OnChainStruct {
  const { fields } = struct;
  const changedIndex = choice % fields.length;
  const [first, second] = fields;
  switch (kind) {
    case 'name':
      return {
        ...struct,
        fields: fields.map((field, index) => (index === changedIndex ? { ...field, name: 'other' } : field)),
      };
    case 'type':
      return {
        ...struct,
        fields: fields.map((field, index) =>
          index === changedIndex ? { ...field, type: createVector(field.type ?? STRING) } : field,
        ),
      };
    case 'missing':
      return { ...struct, fields: fields.slice(0, -1) };
    case 'more':
      return { ...struct, fields: [...fields, { name: 'more', position: fields.length, type: STRING }] };
    default:
      if (first === undefined || second === undefined) return struct;
      return {
        ...struct,
        fields: [{ ...first, position: 1 }, { ...second, position: 0 }, ...fields.slice(2)],
      };
  }
}

describe('structDifference describes a difference in', () => {
  const weather = createOnChainStruct(WEATHER);
  test.each<[string, OnChainStruct, string]>([
    [
      'the name of the struct',
      { ...weather, name: 'Reading' },
      'the signed type is WeatherResponse, but the struct on chain is Reading',
    ],
    ['the kind: an enum', { ...weather, kind: Kind.ENUM }, 'WeatherResponse on chain is not a struct'],
    [
      'the type parameters',
      { ...weather, typeParameters: [{}] },
      'WeatherResponse on chain has type parameters',
    ],
    [
      'the name of a field',
      { ...weather, fields: [location, { ...temperature, name: 'celsius' }] },
      'field 2 of WeatherResponse is signed as temperature, but on chain it is celsius',
    ],
    [
      'the number of fields',
      { ...weather, fields: [location] },
      'field 2 of WeatherResponse, temperature, is not on chain',
    ],
    [
      'the type of a field',
      { ...weather, fields: [location, { ...temperature, type: plain(Type.U128) }] },
      'WeatherResponse.temperature is signed as u64, but on chain it is u128',
    ],
    [
      "the type of a field: a String of Move's library",
      { ...weather, fields: [{ ...location, type: datatype('0x1::ascii::String') }, temperature] },
      'WeatherResponse.location is signed as String, but on chain it is 0x1::ascii::String',
    ],
    [
      "the type of a field: the contract's own String",
      { ...weather, fields: [{ ...location, type: datatype(`${PACKAGE}::string::String`) }, temperature] },
      `WeatherResponse.location is signed as String, but on chain it is ${PACKAGE}::string::String`,
    ],
  ])('%s', (_, struct, difference) => {
    expect(structDifference(WEATHER, struct)).toContain(difference);
  });
});

test('an ID on chain equals an address', () => {
  const type = { name: 'Award', fields: [{ name: 'to', type: 'address', width: 32 }] };
  const struct = {
    ...createOnChainStruct(type),
    fields: [{ name: 'to', position: 0, type: datatype('0x2::object::ID') }],
  };
  expect(structDifference(type, struct)).toBeUndefined();
});

test('an endless answer of a hostile node is refused, and its texts are not repeated', () => {
  const endless: { type: number; typeParameterInstantiation: OnChainType[] } = {
    type: Type.VECTOR,
    typeParameterInstantiation: [],
  };
  endless.typeParameterInstantiation.push(endless);
  const hostile = {
    ...createOnChainStruct(WEATHER),
    fields: [{ name: '\u202e<b>', position: 0, type: endless }],
  };
  expect(structDifference(WEATHER, hostile)).toBe(
    'field 1 of WeatherResponse is signed as location, but on chain it is unknown',
  );
  const endlessField = { ...createOnChainStruct(WEATHER), fields: [{ ...location, type: endless }] };
  expect(structDifference(WEATHER, endlessField)?.length).toBeLessThan(300);
});
