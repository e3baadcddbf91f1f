import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/library/errors.ts';
import { fingerprint, parseSeeds } from '../../../src/service/salt_seeds.ts';
import vectors from '../../vectors/salt.json' with { type: 'json' };

const hex = (text: string) => Buffer.from(text, 'hex');

test.each(vectors.fingerprints)(
  'the fingerprint of a seed: $fingerprint',
  ({ seed, fingerprint: expected }) => {
    expect(fingerprint(hex(seed))).toBe(expected);
  },
);

describe('seeds', () => {
  const [firstSeed, two] = ['ab'.repeat(32), 'CD'.repeat(32)];

  test('are 64 hex characters per line; the first line is version 1', () => {
    expect(parseSeeds(firstSeed)).toEqual([hex(firstSeed)]);
    expect(parseSeeds(`${firstSeed}\n${two}`)).toEqual([hex(firstSeed), hex(two)]);
  });

  test.each([
    ['a character short', firstSeed.slice(1), /^SALT_SEED, line 1, must be 64 hex characters/],
    ['a character long', `${firstSeed}a`, /line 1/],
    ['with 0x', `0x${firstSeed.slice(2)}`, /line 1/],
    ['in base64', hex(firstSeed).toString('base64'), /line 1/],
    ['with a space', ` ${firstSeed}`, /line 1/],
    ['empty', '', /line 1/],
    ['with an empty line', `${firstSeed}\n\n${two}`, /line 2/],
    ['with a carriage return', `${firstSeed}\r\n${two}`, /line 1/],
    ['one twice', `${firstSeed}\n${two}\n${firstSeed}`, /^SALT_SEED, line 3, repeats line 1$/],
  ])('are rejected %s, without repeating them', (_what, text, message) => {
    expect(() => parseSeeds(text)).toThrow(ConfigError);
    expect(() => parseSeeds(text)).toThrow(message);
    expect(() => parseSeeds(text)).not.toThrow(/abab|cdcd/i);
  });
});
