import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/library/errors.ts';
import { fingerprint, parseSeeds } from '../../../src/service/salt_seeds.ts';
import vectors from '../../vectors/salt.json' with { type: 'json' };

const hex = (text: string) => Buffer.from(text, 'hex');

test.each(vectors.fingerprints)(
  'a seed has the fingerprint $fingerprint',
  ({ seed, fingerprint: expected }) => {
    expect(fingerprint(hex(seed))).toBe(expected);
  },
);

describe('seeds', () => {
  const [firstSeed, secondSeed] = ['ab'.repeat(32), 'CD'.repeat(32)];

  test('are 64 hex characters per line; the first line is version 1', () => {
    expect(parseSeeds(firstSeed)).toEqual([hex(firstSeed)]);
    expect(parseSeeds(`${firstSeed}\n${secondSeed}`)).toEqual([hex(firstSeed), hex(secondSeed)]);
  });

  test.each([
    ['a character short', firstSeed.slice(1), /^SALT_SEED, line 1, must be 64 hex characters/],
    ['a character long', `${firstSeed}a`, /line 1/],
    ['with 0x', `0x${firstSeed.slice(2)}`, /line 1/],
    ['in base64', hex(firstSeed).toString('base64'), /line 1/],
    ['with a space', ` ${firstSeed}`, /line 1/],
    ['an empty file', '', /line 1/],
    ['with an empty line', `${firstSeed}\n\n${secondSeed}`, /line 2/],
    ['with a carriage return', `${firstSeed}\r\n${secondSeed}`, /line 1/],
    [
      'a seed that occurs twice',
      `${firstSeed}\n${secondSeed}\n${firstSeed}`,
      /^SALT_SEED, line 3, repeats line 1$/,
    ],
  ])('are refused by an error that does not quote them: %s', (_caseName, text, message) => {
    expect(() => parseSeeds(text)).toThrow(ConfigError);
    expect(() => parseSeeds(text)).toThrow(message);
    expect(() => parseSeeds(text)).not.toThrow(/abab|cdcd/i);
  });
});
