import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readNumber, writeNumber } from '../../src/zklogin/numbers.ts';

test('a number is read as it was written, in either encoding', () => {
  for (const size of [16, 33, 34]) {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << BigInt(8 * size)) - 1n }), (number) => {
        expect(readNumber('x', writeNumber(number, 'decimal', size), size)).toBe(number);
        expect(readNumber('x', writeNumber(number, 'base64', size), size)).toBe(number);
        expect(Buffer.from(writeNumber(number, 'base64', size), 'base64')).toHaveLength(size);
        expect(readNumber('x', number, size)).toBe(number);
      }),
    );
  }
});

test.each([
  ['too large', 1n << 128n],
  ['too large in decimal', String(1n << 128n)],
  ['below zero', -1n],
  ['below zero in decimal', '-1'],
  ['empty', ''],
  ['with white space', ' 1'],
  ['a fraction', '1.0'],
  ['in hex', '0x10'],
  ['in base64 that is short of a byte', Buffer.alloc(15, 1).toString('base64')],
  ['in base64 with a byte too many', Buffer.alloc(17, 1).toString('base64')],
  ['in base64url', Buffer.alloc(16, 0xff).toString('base64url')],
  ['in base64 without padding', Buffer.alloc(16, 1).toString('base64').replaceAll('=', '')],
  ['of far too many digits', '1'.repeat(1_000_000)],
  ['a number of JavaScript', 5],
  ['nothing', undefined],
])('what is no number of 16 bytes is refused: %s', (_what, value) => {
  expect(() => readNumber('the salt', value as never, 16)).toThrow(
    /^the salt must be an integer of at most 16 bytes/,
  );
});
