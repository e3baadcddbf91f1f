import { readFileSync } from 'node:fs';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha3_256 } from '@noble/hashes/sha3.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deriveSalt } from '../derive.ts';

interface Vectors {
  derivations: Record<'name' | 'seed' | 'issuer' | 'clientId' | 'subject' | 'salt', string>[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/salt.json', import.meta.url), 'utf8'),
);
const hex = (text: string) => Buffer.from(text, 'hex');

describe('the salt', () => {
  test.each(vectors.derivations)('$name', ({ seed, issuer, clientId, subject, salt }) => {
    expect(deriveSalt(hex(seed), issuer, clientId, subject)).toBe(salt);
  });

  test('is the same for both spellings of Google’s issuer, and differs if anything else differs', () => {
    const [googleSalt, secondSpellingSalt, ...moreSalts] = vectors.derivations.map(({ salt }) => salt);
    expect(secondSpellingSalt).toBe(googleSalt);
    expect(new Set([googleSalt, ...moreSalts]).size).toBe(1 + moreSalts.length);
  });

  test('equals HKDF-SHA3-256 of another library, and is below 2^128', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.string(),
        fc.string(),
        fc.string(),
        (seed, issuer, clientId, subject) => {
          const bytes = hkdf(
            sha3_256,
            seed,
            new TextEncoder().encode(issuer + clientId),
            new TextEncoder().encode(subject),
            16,
          );
          const salt = deriveSalt(seed, issuer, clientId, subject);
          expect(BigInt(salt)).toBe(BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
          expect(BigInt(salt) < 2n ** 128n).toBe(true);
        },
      ),
    );
  });
});
