import { GrpcTypes } from '@mysten/sui/grpc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { type OnChainStruct, type OnChainType, structDifference } from '../../../../src/library/sui/index.ts';
import {
  type SchemaField,
  type SchemaStruct,
  toSchemaType,
  unwrapped,
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
const createVector = (item: OnChainType): OnChainType => ({
  type: Type.VECTOR,
  typeParameterInstantiation: [item],
});
const datatype = (typeName: string, ...typeArguments: OnChainType[]): OnChainType => ({
  type: Type.DATATYPE,
  typeName,
  typeParameterInstantiation: typeArguments,
});
const long = (short: string) =>
  short.replace(/^0x(\d)/, (_, digit) => `0x${String(digit).padStart(64, '0')}`);
const STRING = datatype(long('0x1::string::String'));

function onChainType(type: string): OnChainType {
  const [, wrapper, inner] = /^(vector|Option)<(.*)>$/.exec(type) ?? [];
  if (inner !== undefined) {
    const item = onChainType(inner);
    return wrapper === 'vector' ? createVector(item) : datatype(long('0x1::option::Option'), item);
  }
  const number = PLAIN[type];
  if (number !== undefined) return plain(number);
  return type === 'String' ? STRING : datatype(`${PACKAGE}::app::${type}`);
}

/** Returns the struct that Move has for a signed type. */
function published({ name, fields }: SchemaStruct): OnChainStruct {
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
    inner === undefined ? [] : [{ name: unwrapped(type).leaf, fields: inner }, ...listNested(inner)],
  );
}

const WEATHER = toSchemaType(WeatherResponse);
const [location, temperature] = published(WEATHER).fields;
if (location === undefined || temperature === undefined) throw new Error('no fields');

test('the structs that gRPC returns are accepted unchanged', () => {
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

test('a struct with the same fields is equal, with any types', () => {
  fc.assert(
    fc.property(randomMessages, ({ signed }) => {
      const type = toSchemaType(signed);
      const nested = listNested(type.fields).map(published);
      expect(structDifference(type, published(type), nested)).toBeUndefined();
      if (nested.length > 0) {
        expect(structDifference(type, published(type))).toMatch(/ on chain was not read$/);
      }
    }),
  );
});

test('a struct with any change to a field, at any depth, differs', () => {
  const changes = fc.record({
    which: fc.nat(),
    kind: fc.constantFrom('name', 'type', 'missing', 'more', 'order'),
  });
  fc.assert(
    fc.property(randomMessages, changes, ({ signed }, { which, kind }) => {
      const type = toSchemaType(signed);
      const all = [type, ...listNested(type.fields)].map(published);
      const changed = all.map((struct, index) =>
        index === which % all.length ? change(struct, which, kind) : struct,
      );
      const [first, ...nested] = changed;
      if (first === undefined || changed[which % all.length] === all[which % all.length]) return;
      expect(structDifference(type, first, nested)).toMatch(/./);
    }),
    { numRuns: 500 },
  );
});

function change(struct: OnChainStruct, which: number, kind: string): OnChainStruct {
  const { fields } = struct;
  const at = which % fields.length;
  const [first, second] = fields;
  switch (kind) {
    case 'name':
      return {
        ...struct,
        fields: fields.map((field, index) => (index === at ? { ...field, name: 'other' } : field)),
      };
    case 'type':
      return {
        ...struct,
        fields: fields.map((field, index) =>
          index === at ? { ...field, type: createVector(field.type ?? STRING) } : field,
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

describe('names the difference:', () => {
  const weather = published(WEATHER);
  test.each<[string, OnChainStruct, string]>([
    [
      'the name',
      { ...weather, name: 'Reading' },
      'the signed type is WeatherResponse, and the struct on chain Reading',
    ],
    ['an enum', { ...weather, kind: Kind.ENUM }, 'WeatherResponse on chain is not a struct'],
    ['type parameters', { ...weather, typeParameters: [{}] }, 'WeatherResponse on chain has type parameters'],
    [
      'the name of a field',
      { ...weather, fields: [location, { ...temperature, name: 'celsius' }] },
      'field 2 of WeatherResponse is signed as temperature, and on chain it is celsius',
    ],
    [
      'a missing field',
      { ...weather, fields: [location] },
      'field 2 of WeatherResponse, temperature, is not on chain',
    ],
    [
      'a type',
      { ...weather, fields: [location, { ...temperature, type: plain(Type.U128) }] },
      'WeatherResponse.temperature is signed as u64, and on chain it is u128',
    ],
    [
      'another String',
      { ...weather, fields: [{ ...location, type: datatype('0x1::ascii::String') }, temperature] },
      'WeatherResponse.location is signed as String, and on chain it is 0x1::ascii::String',
    ],
    [
      "a String of the contract's own",
      { ...weather, fields: [{ ...location, type: datatype(`${PACKAGE}::string::String`) }, temperature] },
      `WeatherResponse.location is signed as String, and on chain it is ${PACKAGE}::string::String`,
    ],
  ])('%s', (_, struct, difference) => {
    expect(structDifference(WEATHER, struct)).toContain(difference);
  });
});

test('an ID is an address to BCS', () => {
  const type = { name: 'Award', fields: [{ name: 'to', type: 'address', width: 32 }] };
  const struct = {
    ...published(type),
    fields: [{ name: 'to', position: 0, type: datatype('0x2::object::ID') }],
  };
  expect(structDifference(type, struct)).toBeUndefined();
});

test('a hostile answer of a node ends, and its texts are not repeated', () => {
  const endless: { type: number; typeParameterInstantiation: OnChainType[] } = {
    type: Type.VECTOR,
    typeParameterInstantiation: [],
  };
  endless.typeParameterInstantiation.push(endless);
  const hostile = { ...published(WEATHER), fields: [{ name: '\u202e<b>', position: 0, type: endless }] };
  expect(structDifference(WEATHER, hostile)).toBe(
    'field 1 of WeatherResponse is signed as location, and on chain it is unknown',
  );
  const named = { ...published(WEATHER), fields: [{ ...location, type: endless }] };
  expect(structDifference(WEATHER, named)?.length).toBeLessThan(300);
});
