/** Vectors of RFC 8949, appendix A, in the strict form and the lenient form. */
import { encode } from 'cborg';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CborFloat, CborMap, CborTag, readCbor } from '../../../../src/library/attestation/cbor.ts';
import { AttestationError } from '../../../../src/library/attestation/index.ts';
import { fromHex } from './cases/case.ts';

describe('the strict and the lenient form read', () => {
  test.each<[string, unknown]>([
    ['00', 0],
    ['17', 23],
    ['1818', 24],
    ['1903e8', 1000],
    ['1b000000e8d4a51000', 1_000_000_000_000],
    ['1bffffffffffffffff', 18_446_744_073_709_551_615n],
    ['3bffffffffffffffff', -18_446_744_073_709_551_616n],
    ['3903e7', -1000],
    ['f93c00', new CborFloat(1)],
    ['fb3ff199999999999a', new CborFloat(1.1)],
    ['f4', false],
    ['f5', true],
    ['f6', null],
    ['f7', null],
    ['c074323031332d30332d32315432303a30343a30305a', new CborTag(0, '2013-03-21T20:04:00Z')],
    ['40', new Uint8Array()],
    ['4401020304', Uint8Array.of(1, 2, 3, 4)],
    ['60', ''],
    ['6449455446', 'IETF'],
    ['62c3bc', '\u00fc'],
    ['63e6b0b4', '\u6c34'],
    ['80', []],
    ['8301820203820405', [1, [2, 3], [4, 5]]],
    [
      'a201020304',
      new CborMap([
        [1, 2],
        [3, 4],
      ]),
    ],
    [
      'a201020103',
      new CborMap([
        [1, 2],
        [1, 3],
      ]),
    ],
    ['c249010000000000000000', new CborTag(2, fromHex('010000000000000000'))],
    ['c2420100', 256],
    ['c34100', -1],
    ['c240', 0],
    ['63efbbbf', '\ufeff'],
  ])('%s', (hex, value) => {
    for (const form of ['strict', 'lenient'] as const) {
      expect(readCbor(fromHex(hex), form)).toEqual({ item: value, length: hex.length / 2 });
    }
  });
});

describe('only the lenient form reads', () => {
  test.each<[string, unknown]>([
    ['1800', 0],
    ['1b0000000000000001', 1],
    ['5803010203', Uint8Array.of(1, 2, 3)],
    ['9fff', []],
    ['9f018202039f0405ffff', [1, [2, 3], [4, 5]]],
    [
      'bf61610161629f0203ffff',
      new CborMap([
        ['a', 1],
        ['b', [2, 3]],
      ]),
    ],
    ['5f42010243030405ff', Uint8Array.of(1, 2, 3, 4, 5)],
    ['5fff', new Uint8Array()],
    ['7f657374726561646d696e67ff', 'streaming'],
    ['5f5f4101ff4102ff', Uint8Array.of(1, 2)],
  ])('%s', (hex, value) => {
    expect(readCbor(fromHex(hex), 'lenient')).toEqual({ item: value, length: hex.length / 2 });
    expect(() => readCbor(fromHex(hex), 'strict')).toThrow(AttestationError);
  });
});

describe('neither form reads', () => {
  test.each([
    ['no bytes', ''],
    ['a break alone', 'ff'],
    ['a break in an array of definite length', '82 01 ff'],
    ['a break in place of a value', 'bf 61 61 ff'],
    ['a definite map that a break ends', 'a1 61 61 ff'],
    ['an array that is cut short', '82 01'],
    ['bytes that are cut short', '43 01 02'],
    ['a string whose chunks are of another type', '5f 61 61 ff'],
    ['a string with half a character in each chunk', '7f 61 c3 61 bc ff'],
    ['a string that is not UTF-8', '62 c3 28'],
    ['a surrogate in UTF-8', '63 ed a0 80'],
    ['a reserved length', '1c'],
    ['a simple value in two bytes', 'f8 18'],
    ['a bignum whose content is a string', 'c2 61 61'],
  ])('%s', (_, hex) => {
    const bytes = fromHex(hex.replaceAll(' ', ''));
    for (const form of ['strict', 'lenient'] as const) {
      expect(() => readCbor(bytes, form)).toThrow(AttestationError);
    }
  });

  test('an array that is nested 257 times', () => {
    const nested = (depth: number) => Uint8Array.from([...Array(depth).fill(0x81), 0]);
    expect(() => readCbor(nested(256), 'strict')).not.toThrow();
    expect(() => readCbor(nested(257), 'lenient')).toThrow(/nest deeper than 256/);
  });
});

test('every value is decoded as it was encoded, whatever bytes follow it', () => {
  const leaf = fc.oneof(
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.string({ unit: 'grapheme' }),
    fc.uint8Array(),
  );
  const tree = fc.letrec((tie) => ({ node: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('node'))) })).node;
  fc.assert(
    fc.property(tree, fc.uint8Array(), (value, suffix) => {
      const bytes = encode(value);
      expect(readCbor(new Uint8Array([...bytes, ...suffix]), 'strict')).toEqual({
        item: value,
        length: bytes.length,
      });
    }),
  );
});
