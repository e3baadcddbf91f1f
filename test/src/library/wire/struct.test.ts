import { readFileSync } from 'node:fs';
import { bcs, toHex } from '@mysten/bcs';
import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { signedType } from '../../../../src/library/wire/intent.ts';
import { bytes, option, vector } from '../../../../src/library/wire/move.ts';
import { struct } from '../../../../src/library/wire/struct.ts';

const Candle = struct('Candle', { low: u64, high: u64 });
const Chart = struct('Chart', {
  pair: text,
  candles: vector(Candle),
  note: option(text),
  digest: bytes,
  latest: Candle,
});

describe('a struct', () => {
  test('has its name, and its fields with their types in the order of their bytes', () => {
    expect(Chart.move).toBe('Chart');
    expect(Chart.fields).toEqual([
      { name: 'pair', type: text, move: 'String' },
      { name: 'candles', type: expect.objectContaining({ item: Candle }), move: 'vector<Candle>' },
      { name: 'note', type: expect.objectContaining({ item: text }), move: 'Option<String>' },
      { name: 'digest', type: bytes, move: 'vector<u8>' },
      { name: 'latest', type: Candle, move: 'Candle' },
    ]);
    expect(Chart.fields[4]?.type.fields?.map(({ name }) => name)).toEqual(['low', 'high']);
  });

  test('does not change if the object of its fields changes', () => {
    const fields = { a: u8 };
    const Single = struct('One', fields);
    Object.assign(fields, { b: u8 });
    expect(Single.fields.map(({ name }) => name)).toEqual(['a']);
    expect(Object.isFrozen(Single.fields) && Single.fields.every(Object.isFrozen)).toBe(true);
  });

  test('has the bytes of the same struct of @mysten/bcs', () => {
    const candle = bcs.struct('Candle', { low: bcs.u64(), high: bcs.u64() });
    const chart = bcs.struct('Chart', {
      pair: bcs.string(),
      candles: bcs.vector(candle),
      note: bcs.option(bcs.string()),
      digest: bcs.byteVector(),
      latest: candle,
    });
    const integers = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const candles = fc.record({ low: integers, high: integers }, { noNullPrototype: true });
    const strings = fc.string();
    const values = fc.record(
      {
        pair: strings,
        candles: fc.array(candles, { maxLength: 3 }),
        note: fc.option(strings),
        digest: fc.uint8Array({ maxLength: 20 }),
        latest: candles,
      },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(values, (value) => {
        const encoded = Chart.serialize(value).toBytes();
        expect(toHex(encoded)).toBe(chart.serialize(value).toHex());
        expect(Chart.parse(encoded)).toEqual(value);
      }),
      { numRuns: 20 },
    );
  });

  test('gives its values the types of its fields', () => {
    expectTypeOf(Chart.parse).returns.toEqualTypeOf<{
      pair: string;
      candles: { low: bigint; high: bigint }[];
      note: string | null;
      digest: Uint8Array;
      latest: { low: bigint; high: bigint };
    }>();
    // @ts-expect-error a u64 is not a boolean
    expect(() => Candle.serialize({ low: true, high: 1n })).toThrow(TypeError);
    // @ts-expect-error high is missing
    expect(() => Candle.serialize({ low: 1n })).toThrow(TypeError);
  });
});

describe('a struct is refused at its definition', () => {
  test.each(['', 'price', '_Price', '1Price', 'Price<T>', 'Price ', 'a::Price', 'P'.repeat(129)])(
    'with the name %j',
    (name) => {
      expect(() => struct(name, { a: u8 })).toThrow(/can't be the name of a struct in Move/);
    },
  );

  // A field named by a number would change the order of the bytes, and a field __proto__ would vanish.
  test.each(['', 'Cents', '1', '_cents', '__proto__', 'in cents', 'cents;', 'c'.repeat(129)])(
    'with a field of the name %j',
    (name) => {
      expect(() =>
        struct('Price', { a: u8, ...JSON.parse(`{${JSON.stringify(name)}: 1}`), [name]: u8 }),
      ).toThrow(/can't be the name of a field in Move/);
    },
  );

  test('without fields, since such a struct has one byte in Move', () => {
    expect(() => struct('Empty', {})).toThrow(/^Empty needs a field/);
  });

  test('with a field whose type does not name its type in Move, by the compiler too', () => {
    const message = /^Price\.cents must be of a type such as u64/;
    // @ts-expect-error a type of the library
    expect(() => struct('Price', { cents: bcs.u64() })).toThrow(message);
    // @ts-expect-error a struct of the library
    expect(() => struct('Price', { cents: bcs.struct('Cents', { value: u64 }) })).toThrow(message);
    // @ts-expect-error no type
    expect(() => struct('Price', { cents: 'u64' })).toThrow(message);
    // @ts-expect-error a signed type
    expect(() => struct('Price', { cents: signedType(0, Candle) })).toThrow(message);
    // @ts-expect-error no BCS
    expect(() => struct('Price', { cents: { move: 'u64' } })).toThrow(message);
    // @ts-expect-error nothing
    expect(() => struct('Price', { cents: undefined })).toThrow(message);
  });
});

test('WeatherResponse has the fields of the Move struct', () => {
  const source = readFileSync(
    new URL('../../../../move/weather/sources/weather.move', import.meta.url),
    'utf8',
  );
  const [, body = ''] = /struct WeatherResponse [\w ,]*\{(.*?)\}/s.exec(source) ?? [];
  const fields = [...body.matchAll(/^ +(\w+): (.+),$/gm)].map(([, name, type]) => `${name}: ${type}`);
  expect(fields).toHaveLength(2);
  expect(WeatherResponse.payload.fields.map(({ name, move }) => `${name}: ${move}`)).toEqual(fields);
});
