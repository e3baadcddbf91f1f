import { inspect } from 'node:util';
import { x25519 } from '@noble/curves/ed25519.js';
import { describe, expect, test } from 'vitest';
import { sealRequest } from '../../../../src/library/sealing/request.ts';
import { bootSeed } from '../../../../src/server/keys/seed.ts';
import { SealingKey } from '../../../../src/server/sealing/sealing_key.ts';

const toHex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('SealingKey', () => {
  test('has the public key that an independent implementation of X25519 derives', () => {
    for (let round = 0; round < 5; round++) {
      const bytes = bootSeed('test');
      expect(toHex(SealingKey.of(bytes).publicKey)).toBe(toHex(x25519.getPublicKey(bytes)));
    }
  });

  test('is different each time, even with the same NSM bytes, and leaves these bytes for the caller to wipe', () => {
    const random = new Uint8Array(256).fill(7);
    const keys = Array.from({ length: 20 }, () => toHex(SealingKey.create(random).publicKey));
    expect(new Set(keys).size).toBe(20);
    expect(random.every((byte) => byte === 7)).toBe(true);
  });

  test('rejects fewer than 32 bytes from the NSM', () => {
    expect(() => SealingKey.create(new Uint8Array(31))).toThrow(RangeError);
  });

  test('reveals nothing but its public key when printed, copied or serialised', () => {
    const bytes = bootSeed('test');
    const secret = [
      toHex(bytes),
      Buffer.from(bytes).toString('base64'),
      Buffer.from(bytes).toString('base64url'),
    ];
    const key = SealingKey.of(bytes);
    expect(JSON.stringify(key)).toBe('{}');
    expect({ ...key }).toEqual({});
    const printed = inspect([key, key.key], { showHidden: true, depth: 9 }) + JSON.stringify([key, key.key]);
    for (const form of secret) expect(printed).not.toContain(form);
    expect(printed).not.toContain(bytes.join(', '));
  });

  test('returns a copy of its public key', async () => {
    const key = SealingKey.create();
    key.publicKey.fill(0);
    const { message } = await sealRequest(key.publicKey, { method: 'GET', path: '/' });
    expect((await key.open(message)).content.length).toBeGreaterThan(0);
  });
});

test('bootSeed returns another seed each time, even with the same NSM bytes', () => {
  const random = new Uint8Array(32).fill(1);
  expect(bootSeed('a', random)).toHaveLength(32);
  expect(toHex(bootSeed('a', random))).not.toBe(toHex(bootSeed('a', random)));
});
