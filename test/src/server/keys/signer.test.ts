import { bcs } from '@mysten/bcs';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { ApplicationMistake, ConfigError } from '../../../../src/library/errors.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { signedType } from '../../../../src/library/wire/intent.ts';
import { EphemeralKey } from '../../../../src/server/keys/key.ts';
import { Signer } from '../../../../src/server/keys/signer.ts';

const key = EphemeralKey.create();

describe('Signer', () => {
  test('answers with the signed data, and the signature verifies over its BCS bytes', () => {
    const data = { location: 'San Francisco', temperature: 13n };
    const { json } = new Signer(key, [WeatherResponse]).sign(WeatherResponse, 1744038900000n, data);
    const { response, signature } = JSON.parse(json);
    expect(response).toEqual({
      intent: 0,
      timestamp_ms: 1744038900000,
      data: { location: 'San Francisco', temperature: 13 },
    });
    const bytes = Buffer.from('0020b1d110960100000d53616e204672616e636973636f0d00000000000000', 'hex');
    expect(ed25519.verify(Buffer.from(signature, 'hex'), bytes, key.publicKey)).toBe(true);
  });

  test('serialises like a real enclave, whose signature verifies over these bytes', () => {
    const bytes = WeatherResponse.message.serialize({
      intent: 0,
      timestamp_ms: 1744683300000n,
      payload: { location: 'San Francisco', temperature: 13n },
    });
    const publicKey = Buffer.from('e8e62201dbe293b703c759f653107acbc2c911fa1d2e66f2c747bec95971a2af', 'hex');
    const signature = Buffer.from(
      '77b6d8be225440d00f3d6eb52e91076a8927cebfb520e58c19daf31ecf06b3798ec3d3ce9630a9eceee46d24f057794a60dd781657cb06d952269cfc5ae19500',
      'hex',
    );
    expect(ed25519.verify(signature, bytes.toBytes(), publicKey)).toBe(true);
  });

  test('returns the same bytes for the same data', () => {
    const signer = new Signer(key, [WeatherResponse]);
    const sign = () => signer.sign(WeatherResponse, 1n, { location: 'Oslo', temperature: 3n }).json;
    expect(sign()).toBe(sign());
  });

  test('can add values to the signed data once; the signature, the key and the original answer stay unchanged', () => {
    const answer = new Signer(key, [WeatherResponse]).sign(WeatherResponse, 1n, {
      location: 'Oslo',
      temperature: 3n,
    });
    const extended = answer.withUnsigned({ note: '"}' });
    expect(JSON.parse(extended.json)).toEqual({ ...JSON.parse(answer.json), unsigned: { note: '"}' } });
    expect([extended.bytes, extended.headers]).toEqual([Buffer.byteLength(extended.json), answer.headers]);
    expect(answer.json).not.toContain('unsigned');
    expect(() => extended.withUnsigned({})).toThrow(ApplicationMistake);
  });

  test('writes a u64 as a number up to 2^53 - 1 and as a decimal string beyond, both exact', () => {
    const Big = signedType(3, bcs.struct('Big', { value: u64 }));
    const signer = new Signer(key, [Big]);
    const signAndParse = (value: bigint) => JSON.parse(signer.sign(Big, value, { value }).json).response;
    expect(signAndParse(2n ** 53n - 1n)).toMatchObject({
      timestamp_ms: 9007199254740991,
      data: { value: 9007199254740991 },
    });
    expect(signAndParse(2n ** 53n)).toMatchObject({
      timestamp_ms: '9007199254740992',
      data: { value: '9007199254740992' },
    });
    expect(signAndParse(2n ** 64n - 1n).data.value).toBe('18446744073709551615');
  });

  test('writes nested values, bytes, maps and enums without losing anything', () => {
    const All = bcs.struct('All', {
      list: bcs.vector(bcs.struct('Item', { id: u64, name: bcs.option(text) })),
      raw: bcs.byteVector(),
      map: bcs.map(text, u64),
      kind: bcs.enum('Kind', { Big: u64, None: null }),
      isOpen: bcs.bool(),
    });
    const Signed = signedType(5, All);
    const data = {
      list: [
        { id: 2n ** 60n, name: 'a' },
        { id: 1n, name: null },
      ],
      raw: Uint8Array.of(1, 255),
      map: new Map([['x', 2n ** 60n]]),
      kind: { Big: 7n, $kind: 'Big' },
      isOpen: true,
    };
    const { json } = new Signer(key, [Signed]).sign(Signed, 1n, data as never);
    expect(JSON.parse(json).response.data).toEqual({
      list: [
        { id: '1152921504606846976', name: 'a' },
        { id: 1, name: null },
      ],
      raw: [1, 255],
      map: [['x', '1152921504606846976']],
      kind: { Big: 7, $kind: 'Big' },
      isOpen: true,
    });
  });

  test('rejects two types with the same intent code, naming both', () => {
    const Clashing = signedType(0, bcs.struct('Other', { value: u8 }));
    expect(() => new Signer(key, [WeatherResponse, Clashing])).toThrow(ConfigError);
    expect(() => new Signer(key, [WeatherResponse, Clashing])).toThrow(/WeatherResponse.*Other/);
  });

  test('rejects an undeclared type, even with an unused intent code', () => {
    const Unlisted = signedType(9, bcs.struct('Other', { value: u8 }));
    expect(() => new Signer(key, [WeatherResponse]).sign(Unlisted, 1n, { value: 1 })).toThrow(
      ApplicationMistake,
    );
    expect(() => new Signer(key, []).sign(Unlisted, 1n, { value: 1 })).toThrow(
      /^Other is not among .*: add it/,
    );
  });

  test.each([
    ['an extra property', bcs.struct('Wide', { a: u8 }), { a: 1, b: 2 }],
    ['a missing property', bcs.struct('Narrow', { a: bcs.u8() }), {}],
    ['a fraction that plain @mysten/bcs truncates', bcs.struct('Frac', { a: bcs.u16() }), { a: 1.5 }],
    [
      'a lone surrogate that plain @mysten/bcs replaces',
      bcs.struct('Text', { a: bcs.string() }),
      { a: '\ud800' },
    ],
    ['a lone surrogate in the strict type', bcs.struct('Strict', { a: text }), { a: '\ud800' }],
    ['a negative u64', bcs.struct('Neg', { a: u64 }), { a: -1n }],
    ['a u64 that overflows', bcs.struct('Over', { a: u64 }), { a: 2n ** 64n }],
    ['a u64 that is not a bigint', bcs.struct('Loose', { a: u64 }), { a: 1 }],
    ['a string that the library would repeat', bcs.struct('Echo', { a: bcs.u16() }), { a: 'hunter2' }],
  ])('does not sign %s, and says what to change', (_name, type, data) => {
    const Signed = signedType(4, type as never);
    const sign = () => new Signer(key, [Signed]).sign(Signed, 1n, data as never);
    expect(sign).toThrow(ApplicationMistake);
    expect(sign).toThrow(new RegExp(`^${type.name} can't hold property [ab]: .* give a u64 as a bigint`));
    expect(sign).not.toThrow(/hunter2/);
  });

  const Inner = bcs.struct('Inner', { when: u64, note: text });
  const Outer = bcs.struct('Outer', { id: u64, list: bcs.vector(Inner) });
  const inner = { when: 1n, note: '' };
  test.each([
    ['list.1.when', { id: 1n, list: [inner, { ...inner, when: -1n }] }],
    ['list.1.when', { id: 1n, list: [inner, { ...inner, when: 5 }] }],
    ['list.0.note', { id: 1n, list: [{ ...inner, note: '\ud800' }, inner] }],
    ['list.0.more', { id: 1n, list: [{ ...inner, more: 'hunter2' }] }],
    ['id', { id: 'hunter2', list: [] }],
    ['list', { id: 1n, list: 'hunter2' }],
  ])("names the property that the type can't hold: %s", (path, data) => {
    const Signed = signedType(4, Outer);
    const sign = () => new Signer(key, [Signed]).sign(Signed, 1n, data as never);
    expect(sign).toThrow(new RegExp(`^Outer can't hold property ${path}: `));
    expect(sign).not.toThrow(/hunter2/);
  });

  test('does not sign a time that is not a bigint', () => {
    const sign = () =>
      new Signer(key, [WeatherResponse]).sign(WeatherResponse, 1 as never, { location: '', temperature: 0n });
    expect(sign).toThrow(ApplicationMistake);
    expect(sign).toThrow(/^WeatherResponse can't hold property timestamp_ms: /);
  });

  test.each([-1, 256, 1.5])('rejects the intent code %d', (intent) => {
    expect(() => signedType(intent, u8)).toThrow(TypeError);
  });
});
