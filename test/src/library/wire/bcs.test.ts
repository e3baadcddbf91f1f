import { bcs, fromHex, toHex } from '@mysten/bcs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { IntentMessage } from '../../../../src/library/wire/intent.ts';

const wellFormed = fc.string({ unit: 'binary' });
const anyU64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

describe('IntentMessage<WeatherResponse>', () => {
  test('has the bytes of the test vector of the Move contract', () => {
    const bytes = WeatherResponse.message.serialize({
      intent: 0,
      timestamp_ms: 1744038900000n,
      payload: { location: 'San Francisco', temperature: 13n },
    });
    expect(bytes.toHex()).toBe('0020b1d110960100000d53616e204672616e636973636f0d00000000000000');
  });

  test('survives a round trip, for every u8, u64 and well-formed string', () => {
    fc.assert(
      fc.property(fc.nat(255), anyU64, wellFormed, anyU64, (intent, timestamp_ms, location, temperature) => {
        const message = { intent, timestamp_ms, payload: { location, temperature } };
        expect(WeatherResponse.message.parse(WeatherResponse.message.serialize(message).toBytes())).toEqual(
          message,
        );
      }),
      { numRuns: 1000 },
    );
  });

  test('has different bytes for different values', () => {
    const messages = fc.tuple(fc.nat(255), anyU64, wellFormed, anyU64);
    const encode = ([intent, timestamp_ms, location, temperature]: [number, bigint, string, bigint]) =>
      toHex(
        WeatherResponse.message
          .serialize({ intent, timestamp_ms, payload: { location, temperature } })
          .toBytes(),
      );
    fc.assert(
      fc.property(messages, messages, (a, b) => {
        expect(encode(a) === encode(b)).toBe(a.every((value, index) => value === b[index]));
      }),
    );
  });
});

describe('u64', () => {
  test('accepts bigints, safe integers and decimal strings, and parses to bigints', () => {
    for (const value of [5n, 5, '5']) {
      expect(u64.parse(u64.serialize(value).toBytes())).toBe(5n);
    }
    expect(toHex(u64.serialize(2n ** 64n - 1n).toBytes())).toBe('ffffffffffffffff');
    expect(u64.parse(fromHex('ffffffffffffffff'))).toBe(18446744073709551615n);
  });

  test.each([
    -1n,
    2n ** 64n,
    -1,
    1.5,
    2 ** 53,
    Number.NaN,
    '',
    ' 1',
    '0x10',
    '01',
    '-1',
    '18446744073709551616',
    true,
    null,
    undefined,
  ])('refuses %o', (value) => {
    expect(() => u64.serialize(value as bigint)).toThrow(TypeError);
  });
});

describe('u8', () => {
  test.each([-1, 256, 1.5, Number.NaN, undefined, null, '1'])('refuses %o', (value) => {
    expect(() => u8.serialize(value as number)).toThrow(TypeError);
  });
});

describe('text', () => {
  test('refuses a lone surrogate, which @mysten/bcs would replace', () => {
    expect(bcs.string().serialize('\ud800').toHex()).toBe('03efbfbd');
    expect(() => text.serialize('a\ud800')).toThrow(TypeError);
    expect(() => text.serialize('\udc00b')).toThrow(TypeError);
  });

  test('keeps strings unchanged, without normalising them', () => {
    expect(text.parse(text.serialize('e\u0301 \0 🌦').toBytes())).toBe('e\u0301 \0 🌦');
  });
});

test('an intent must be a u8', () => {
  expect(() => IntentMessage(u8).serialize({ intent: 256, timestamp_ms: 0n, payload: 0 })).toThrow(TypeError);
});
