import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { signedType } from '../../../../src/library/wire/intent.ts';
import { address, bytes, option, vector } from '../../../../src/library/wire/move.ts';
import { computeWidth, toSchemaType, unwrapType } from '../../../../src/library/wire/schema_type.ts';
import { struct } from '../../../../src/library/wire/struct.ts';
import { randomMessages } from './random_types.ts';

test('toSchemaType returns the intent, the name and the fields of a signed type', () => {
  expect(toSchemaType(WeatherResponse)).toEqual({
    intent: 0,
    name: 'WeatherResponse',
    fields: [
      { name: 'location', type: 'String' },
      { name: 'temperature', type: 'u64', width: 8 },
    ],
  });
});

test('toSchemaType returns the fields of structs within vectors and Options, and all fixed sizes', () => {
  const Leg = struct('Leg', { venue: address, price: u64 });
  const Route = struct('Route', { first: Leg, others: vector(option(Leg)), memo: bytes, tag: u8 });
  const legFields = [
    { name: 'venue', type: 'address', width: 32 },
    { name: 'price', type: 'u64', width: 8 },
  ];
  expect(toSchemaType(signedType(3, Route)).fields).toEqual([
    { name: 'first', type: 'Leg', width: 40, fields: legFields },
    { name: 'others', type: 'vector<Option<Leg>>', fields: legFields },
    { name: 'memo', type: 'vector<u8>' },
    { name: 'tag', type: 'u8', width: 1 },
  ]);
});

test('a width is the number of bytes of every value', () => {
  fc.assert(
    fc.property(randomMessages, ({ signed, bytes: message }) => {
      const { fields } = toSchemaType(signed);
      const width = computeWidth(signed.payload.name, fields);
      // The intent and the time take nine bytes.
      if (width !== undefined) expect(message.length).toBe(9 + width);
    }),
  );
  expect(computeWidth('u256', undefined)).toBe(32);
  expect(computeWidth('String', undefined)).toBeUndefined();
  expect(computeWidth('T', toSchemaType(signedType(0, struct('T', { a: text }))).fields)).toBeUndefined();
});

test('the name of a type is split into its wrappers and its innermost type', () => {
  expect(unwrapType('u64')).toEqual({ wrappers: [], leaf: 'u64' });
  expect(unwrapType('vector<Option<u8>')).toEqual({ wrappers: ['vector'], leaf: 'Option<u8' });
  expect(unwrapType('vector<>')).toEqual({ wrappers: ['vector'], leaf: '' });
  expect(unwrapType('vector<vector<>')).toEqual({ wrappers: ['vector'], leaf: 'vector<' });
  expect(unwrapType('vector<Option<Leg>>')).toEqual({ wrappers: ['vector', 'Option'], leaf: 'Leg' });
  expect(unwrapType('vector<u8')).toEqual({ wrappers: [], leaf: 'vector<u8' });
});
