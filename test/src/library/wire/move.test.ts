import { bcs, toHex } from '@mysten/bcs';
import { bcs as suiBcs } from '@mysten/sui/bcs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import {
  address,
  bool,
  bytes,
  option,
  u16,
  u32,
  u128,
  u256,
  vector,
} from '../../../../src/library/wire/move.ts';

const bigBelow = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n });
const strings = fc.string({ unit: 'binary' });
const addresses = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((value) => `0x${toHex(value)}`);

/** Types: the name in Move, the type, the type of @mysten/bcs with the same bytes, and values. */
const TYPES = [
  ['bool', bool, bcs.bool(), fc.boolean()],
  ['u8', u8, bcs.u8(), fc.nat(2 ** 8 - 1)],
  ['u16', u16, bcs.u16(), fc.nat(2 ** 16 - 1)],
  ['u32', u32, bcs.u32(), fc.nat(2 ** 32 - 1)],
  ['u64', u64, bcs.u64(), bigBelow(64)],
  ['u128', u128, bcs.u128(), bigBelow(128)],
  ['u256', u256, bcs.u256(), bigBelow(256)],
  ['String', text, bcs.string(), strings],
  ['address', address, suiBcs.Address, addresses],
  ['vector<u8>', bytes, bcs.byteVector(), fc.uint8Array()],
  ['vector<u64>', vector(u64), bcs.vector(bcs.u64()), fc.array(bigBelow(64))],
  ['Option<bool>', option(bool), bcs.option(bcs.bool()), fc.option(fc.boolean())],
  [
    'vector<Option<vector<String>>>',
    vector(option(vector(text))),
    bcs.vector(bcs.option(bcs.vector(bcs.string()))),
    fc.array(fc.option(fc.array(strings))),
  ],
] as const;

test.each(TYPES)(
  '%s has the name and the bytes that it has in Move, and keeps every value',
  (name, type, plain, values) => {
    expect(type.move).toBe(name);
    const encode = (bcsType: typeof type | typeof plain, value: unknown) =>
      bcsType.serialize(value as never).toBytes();
    fc.assert(
      fc.property(values as fc.Arbitrary<unknown>, (value) => {
        const encoded = encode(type, value);
        expect(toHex(encoded)).toBe(toHex(encode(plain, value)));
        expect(type.parse(encoded)).toEqual(value);
      }),
    );
  },
);

describe.each([
  ['bool', bool, [0, 1, 'true', null, undefined]],
  ['u16', u16, [-1, 2 ** 16, 1.5, Number.NaN, '1', 1n, null, undefined]],
  ['u32', u32, [-1, 2 ** 32, 1.5, Number.NaN, '1', 1n, null, undefined]],
  ['u128', u128, [-1n, 2n ** 128n, -1, 1.5, 2 ** 53, '', ' 1', '01', '0x10', '-1', true, null, undefined]],
  ['u256', u256, [-1n, 2n ** 256n, 2 ** 53, '1'.repeat(79), '1e3', true, null, undefined]],
  [
    'address',
    address,
    [
      '',
      '0x2',
      `0x${'A'.repeat(64)}`,
      'a'.repeat(64),
      `0x${'a'.repeat(66)}`,
      `0x${'a'.repeat(64)}\n`,
      null,
      5n,
    ],
  ],
  [
    'vector<u8>',
    bytes,
    [[256], [-1], [1.5], ['1'], new Array(1), [null], 'ab', { length: 1 }, new Uint16Array(1), null],
  ],
  ['vector<u64>', vector(u64), ['12', { length: 1 }, new Uint8Array(1), new Set([1n]), null, undefined]],
  ['Option<u8>', option(u8), [256, 'a', {}]],
] as const)('the type %s', (_name, type, invalidValues) => {
  test.each(invalidValues.map((value) => [value]))('refuses %o', (value) => {
    expect(() => type.serialize(value as never)).toThrow(TypeError);
  });
});

test('integers beyond 32 bits may be given as safe integers and decimal strings, as JSON has them', () => {
  const max = (2n ** 256n - 1n).toString();
  expect(u256.parse(u256.serialize(max).toBytes())).toBe(2n ** 256n - 1n);
  for (const value of [5n, 5, '5']) expect(u128.parse(u128.serialize(value).toBytes())).toBe(5n);
});

test('bytes may be given as an array, as JSON has them', () => {
  expect(bytes.serialize([0, 255]).toHex()).toBe('0200ff');
});

describe('a vector or an Option', () => {
  test('refuses a type of another library, by the compiler and at the definition', () => {
    // @ts-expect-error it has no name in Move
    expect(() => vector(bcs.u64())).toThrow(/^an item of a vector must be of a type such as u64/);
    // @ts-expect-error it has no name in Move
    expect(() => option(bcs.u64())).toThrow(/^the value of an Option must be of a type such as u64/);
    // @ts-expect-error a transformed type may have any values
    expect(() => vector(u64.transform({ input: (value: bigint) => value + 1n }))).toThrow(TypeError);
    expect(() => vector(undefined as never)).toThrow(TypeError);
  });

  test('can not be an Option of an Option, since null would represent two of its values', () => {
    expect(() => option(option(u8))).toThrow(/^Option<Option<u8>> has two values/);
    expect(option(vector(option(u8))).move).toBe('Option<vector<Option<u8>>>');
  });
});
