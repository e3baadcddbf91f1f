import { inspect } from 'node:util';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EphemeralKey } from '../../../../src/server/keys/key.ts';

describe('EphemeralKey', () => {
  test('creates signatures that an independent implementation of ed25519 verifies', () => {
    const key = EphemeralKey.create();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (message) => {
        const signature = key.sign(message);
        expect(signature).toHaveLength(64);
        expect(ed25519.verify(signature, message, key.publicKey, { zip215: false })).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test('creates signatures that fail for another message or key, or when changed', () => {
    const key = EphemeralKey.create();
    const message = Uint8Array.of(1, 2, 3);
    const signature = key.sign(message);
    expect(ed25519.verify(signature, Uint8Array.of(1, 2, 4), key.publicKey)).toBe(false);
    expect(ed25519.verify(signature, message, EphemeralKey.create().publicKey)).toBe(false);
    signature[40] = (signature[40] as number) ^ 1;
    expect(ed25519.verify(signature, message, key.publicKey)).toBe(false);
  });

  test('is different each time, even with the same NSM bytes, and leaves these bytes for the caller to wipe', () => {
    const random = new Uint8Array(256).fill(7);
    const keys = Array.from({ length: 20 }, () => EphemeralKey.create(random));
    const publicKeys = new Set(keys.map((key) => Buffer.from(key.publicKey).toString('hex')));
    expect(publicKeys.size).toBe(20);
    expect(random.every((byte) => byte === 7)).toBe(true);
  });

  test('is the key of RFC 8032, section 7.1, test 2, for the seed of that test, and leaves the seed unchanged', () => {
    const seed = Buffer.from('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', 'hex');
    const seedCopy = Uint8Array.from(seed);
    const key = EphemeralKey.of(seedCopy);
    expect(Buffer.from(key.publicKey).toString('hex')).toBe(
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    );
    expect(key.sign(Uint8Array.of(0x72)).toString('hex')).toMatch(/^92a009a9f0d4cab8720e820b5f642540/);
    expect(seedCopy).toEqual(Uint8Array.from(seed));
  });

  test('rejects a seed of another size', () => {
    for (const size of [0, 31, 33, 64])
      expect(() => EphemeralKey.of(new Uint8Array(size))).toThrow(RangeError);
  });

  test('rejects fewer than 32 bytes from the NSM', () => {
    expect(() => EphemeralKey.create(new Uint8Array(31))).toThrow(RangeError);
    expect(() => EphemeralKey.create(new Uint8Array(0))).toThrow(RangeError);
  });

  test('reveals nothing when printed, copied or serialised', () => {
    const key = EphemeralKey.create();
    expect(JSON.stringify(key)).toBe('{}');
    expect(inspect(key, { showHidden: true, depth: 5 })).toBe('EphemeralKey { [publicKey]: [Getter] }');
    expect({ ...key }).toEqual({});
  });

  test('returns a copy of its public key', () => {
    const key = EphemeralKey.create();
    const returned = key.publicKey;
    returned.fill(0);
    expect(key.publicKey).not.toEqual(returned);
    expect(key.publicKey).toHaveLength(32);
  });
});
