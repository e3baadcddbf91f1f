import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Secp256k1Keypair } from '@mysten/sui/keypairs/secp256k1';
import { Secp256r1Keypair } from '@mysten/sui/keypairs/secp256r1';
import { getExtendedEphemeralPublicKey } from '@mysten/sui/zklogin';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  EXTENDED_KEY_SIZES,
  readNumber,
  SALT_SIZE,
  writeNumber,
} from '../../../../src/library/zklogin/numbers.ts';

test('a number survives a round trip in either encoding and in bytes', () => {
  for (const size of [16, 33, 34]) {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << BigInt(8 * size)) - 1n }), (number) => {
        const base64 = writeNumber(number, 'base64', size);
        const bytes = Buffer.from(base64, 'base64');
        expect(bytes).toHaveLength(size);
        expect(readNumber('x', writeNumber(number, 'decimal', size), size)).toBe(number);
        // A text of digits only is decimal, and base64 of 33 bytes may have only digits by chance.
        if (/[^0-9]/.test(base64)) expect(readNumber('x', base64, size)).toBe(number);
        expect(readNumber('x', number, size)).toBe(number);
        expect(readNumber('x', bytes, size)).toBe(number);
        expect(readNumber('x', Uint8Array.from(bytes), size)).toBe(number);
      }),
    );
  }
});

const bytesOfSizes = (...sizes: number[]) =>
  fc.oneof(...sizes.map((size) => fc.uint8Array({ minLength: size, maxLength: size })));

test('base64 is accepted only if it has exactly the allowed number of bytes', () => {
  fc.assert(
    fc.property(bytesOfSizes(0, 15, 16, 17, 24, 32, 33, 34, 35), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      fc.pre(/[^0-9]/.test(text));
      for (const sizes of [[SALT_SIZE], EXTENDED_KEY_SIZES]) {
        const read = () => readNumber('x', text, ...sizes);
        if (sizes.includes(bytes.length as never)) {
          expect(read()).toBe(BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
        } else {
          expect(read).toThrow(/^x must be an integer/);
        }
      }
    }),
  );
});

test('a string of digits only is decimal, even if it is also base64', () => {
  const digits = Buffer.from('1234'.repeat(11), 'base64');
  expect(digits).toHaveLength(33);
  expect(readNumber('x', digits.toString('base64'), 33)).toBe(BigInt('1234'.repeat(11)));
  expect(readNumber('x', Uint8Array.from(digits), 33)).not.toBe(BigInt('1234'.repeat(11)));
  expect(readNumber('x', '007', 16)).toBe(7n);
});

test.each([
  ['ed25519', new Ed25519Keypair(), 33],
  ['secp256k1', new Secp256k1Keypair(), 34],
  ['secp256r1', new Secp256r1Keypair(), 34],
])(
  "the key that the SDK's getExtendedEphemeralPublicKey returns for %s is accepted",
  (_scheme, keypair, size) => {
    const key = keypair.getPublicKey();
    const number = BigInt(`0x${Buffer.from(key.toSuiBytes()).toString('hex')}`);
    const text = getExtendedEphemeralPublicKey(key);
    expect(Buffer.from(text, 'base64')).toHaveLength(size);
    for (const value of [text, String(number), number, key.toSuiBytes()]) {
      expect(readNumber('key', value, ...EXTENDED_KEY_SIZES)).toBe(number);
    }
  },
);

describe('a number is refused if it is', () => {
  test.each([
    ['too large', 1n << 128n],
    ['too large in decimal', String(1n << 128n)],
    ['below zero', -1n],
    ['below zero in decimal', '-1'],
    ['a number with a plus', '+1'],
    ['empty', ''],
    ['with white space', ' 1'],
    ['with a line break', '1\n'],
    ['a fraction', '1.0'],
    ['in digits of another script', '١٢٣'],
    ['in hex', '0x10'],
    ['in base64 with a byte too few', Buffer.alloc(15, 1).toString('base64')],
    ['in base64 with a byte too many', Buffer.alloc(17, 1).toString('base64')],
    ['in base64url', Buffer.alloc(16, 0xff).toString('base64url')],
    ['in base64url with padding', `${Buffer.alloc(16, 0xff).toString('base64url')}==`],
    ['in base64 without padding', Buffer.alloc(16, 1).toString('base64').replaceAll('=', '')],
    ['in base64 with half its padding', Buffer.alloc(16, 1).toString('base64').replace('==', '=')],
    ['in base64 with leading padding', `==${Buffer.alloc(16, 1).toString('base64').replace('==', '')}`],
    ['in base64 with unused bits set', 'AAAAAAAAAAAAAAAAAAAABR=='],
    ['in base64 with white space', `${Buffer.alloc(16, 1).toString('base64')}\n`],
    ['too few bytes', new Uint8Array(15)],
    ['too many bytes', new Uint8Array(17)],
    ['an empty Uint8Array', new Uint8Array()],
    ['an array of wider elements', new Uint16Array(16)],
    ['a buffer without a view', new ArrayBuffer(16)],
    ['an array', new Array(16).fill(1)],
    ['of far too many digits', '1'.repeat(1_000_000)],
    ['a JavaScript number', 5],
    ['undefined', undefined],
    ['null', null],
  ])('%s', (_label, value) => {
    expect(() => readNumber('the salt', value as never, 16)).toThrow(
      /^the salt must be an integer of at most 16 bytes in decimal, or exactly 16 bytes in standard base64/,
    );
  });

  test('a key of 31 or 35 bytes, or without padding', () => {
    for (const value of [
      Buffer.alloc(31, 1).toString('base64'),
      Buffer.alloc(35, 1).toString('base64'),
      Buffer.alloc(34, 1).toString('base64').replaceAll('=', ''),
      1n << 272n,
      new Uint8Array(31),
    ]) {
      expect(() => readNumber('the key', value, ...EXTENDED_KEY_SIZES)).toThrow(
        /^the key must be an integer of at most 34 bytes in decimal, or exactly 32, 33 or 34 bytes/,
      );
    }
  });
});
