import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatSui, parseMist, shortenId } from '../../../examples/wallet/words.ts';

describe('an amount of SUI', () => {
  test.each([
    ['1', 1_000_000_000n],
    [' 0.5 ', 500_000_000n],
    ['0.000000001', 1n],
    ['9999999999.999999999', 9_999_999_999_999_999_999n],
  ])('%j is read exactly', (text, mist) => {
    expect(parseMist(text)).toBe(mist);
  });

  test.each([
    '',
    '0',
    '0.000000000',
    '-1',
    '+1',
    '1e3',
    '1,5',
    '.5',
    '1.',
    '0.0000000001',
    '10000000000',
    '0x1',
    '١',
  ])('%j is not an amount', (text) => {
    expect(parseMist(text)).toBe(undefined);
  });

  test.each([
    [0n, '0'],
    [1n, '0.000000001'],
    [10_000_000_000n, '10'],
    [9_747_556_912n, '9.747556912'],
    [1_234_500_000_000n, '1,234.5'],
  ])('%s MIST is written with its significant digits', (mist, text) => {
    expect(formatSui(mist)).toBe(text);
  });

  test('is read as it is written, except for the commas', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 9_999_999_999_999_999_999n), (mist) => {
        expect(parseMist(formatSui(mist).replaceAll(',', ''))).toBe(mist);
      }),
    );
  });
});

test.each([
  [`0x${'1'.repeat(32)}${'e'.repeat(32)}`, '0x111111…eeeeee'],
  ['BARB6BXXXXXXXXXXXXXXXXXXXXXX9mnqbu', 'BARB6B…9mnqbu'],
  ['0x5', '0x5'],
])('%s is shown by its ends', (id, text) => {
  expect(shortenId(id)).toBe(text);
});
