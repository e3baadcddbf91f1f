import { readFileSync } from 'node:fs';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha3_256 } from '@noble/hashes/sha3.js';
import fc from 'fast-check';
import { ConfigError } from 'sui-enclave/errors';
import { describe, expect, test } from 'vitest';
import { deriveSalt, fingerprint, parseSeeds } from '../derive.ts';

interface Vectors {
  derivations: Record<'name' | 'seed' | 'issuer' | 'clientId' | 'subject' | 'salt', string>[];
  fingerprints: Record<'seed' | 'fingerprint', string>[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/salt.json', import.meta.url), 'utf8'),
);
const hex = (text: string) => Buffer.from(text, 'hex');

describe('the salt', () => {
  test.each(vectors.derivations)('$name', ({ seed, issuer, clientId, subject, salt }) => {
    expect(deriveSalt(hex(seed), issuer, clientId, subject)).toBe(salt);
  });

  test('is the same for both of Google’s spellings, and differs for any other difference', () => {
    const [google, spelling, ...others] = vectors.derivations.map(({ salt }) => salt);
    expect(spelling).toBe(google);
    expect(new Set([google, ...others]).size).toBe(1 + others.length);
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

test.each(vectors.fingerprints)(
  'the fingerprint of a seed: $fingerprint',
  ({ seed, fingerprint: expected }) => {
    expect(fingerprint(hex(seed))).toBe(expected);
  },
);

describe('seeds', () => {
  const [one, two] = ['ab'.repeat(32), 'CD'.repeat(32)];

  test('are 64 hex characters per line; the first line is version 1', () => {
    expect(parseSeeds(one)).toEqual([hex(one)]);
    expect(parseSeeds(`${one}\n${two}`)).toEqual([hex(one), hex(two)]);
  });

  test.each([
    ['a character short', one.slice(1), /^SALT_SEED, line 1, must be 64 hex characters/],
    ['a character long', `${one}a`, /line 1/],
    ['with 0x', `0x${one.slice(2)}`, /line 1/],
    ['in base64', hex(one).toString('base64'), /line 1/],
    ['with a space', ` ${one}`, /line 1/],
    ['empty', '', /line 1/],
    ['with an empty line', `${one}\n\n${two}`, /line 2/],
    ['with a carriage return', `${one}\r\n${two}`, /line 1/],
    ['one twice', `${one}\n${two}\n${one}`, /^SALT_SEED, line 3, repeats line 1$/],
  ])('are rejected %s, without repeating them', (_what, text, message) => {
    expect(() => parseSeeds(text)).toThrow(ConfigError);
    expect(() => parseSeeds(text)).toThrow(message);
    expect(() => parseSeeds(text)).not.toThrow(/abab|cdcd/i);
  });
});
