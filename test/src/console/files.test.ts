import { describe, expect, test } from 'vitest';
import { recognizeFile } from '../../../src/console/enclave/files.ts';
import { duration, timestamp } from '../../../src/console/lib/times.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);
const register = (index: number) => `${String(index + 1).repeat(96)} PCR${index}\n`;

describe('a dropped file', () => {
  test('with three registers gives the expected image', () => {
    const file = recognizeFile('nitro.pcrs', utf8([0, 1, 2].map(register).join('')));
    expect(file).toMatchObject({
      kind: 'registers',
      images: [{ pcr0: '1'.repeat(96), pcr2: '3'.repeat(96) }],
    });
  });

  test('with a certificate is a root', () => {
    const pem = `-----BEGIN CERTIFICATE-----\n${btoa('der')}\n-----END CERTIFICATE-----\n`;
    expect(recognizeFile('root.pem', utf8(pem))).toMatchObject({ kind: 'roots', roots: [utf8('der')] });
  });

  test.each([
    ['binary', Uint8Array.of(0x84, 0x44, 0xff), Uint8Array.of(0x84, 0x44, 0xff)],
    ['in hexadecimal', utf8(' 8444\nFF '), Uint8Array.of(0x84, 0x44, 0xff)],
    ['as the server answers it', utf8('{"attestation":"8444ff"}'), Uint8Array.of(0x84, 0x44, 0xff)],
  ])('can be a document, %s', (_, bytes, document) => {
    expect(recognizeFile('a', bytes)).toEqual({ kind: 'document', name: 'a', bytes: document });
  });

  test.each([
    ['', /not a document/],
    ['hello', /not a document/],
    [register(0), /PCR0, PCR1 and PCR2/],
    [`${'0'.repeat(96)} PCR0\n${register(1)}${register(2)}`, /zero/],
    ['-----BEGIN CERTIFICATE-----\n***\n-----END CERTIFICATE-----', /no certificate/],
  ])('such as %j is refused, and nothing is compared with it', (text, reason) => {
    const file = recognizeFile('a', utf8(text));
    expect(file.kind === 'refused' && file.why).toMatch(reason);
  });
});

test('duration and timestamp format times as text', () => {
  expect([0, 999, 1000, 61_000, 7_265_000, 90_000_000].map(duration)).toEqual([
    '0 ms',
    '999 ms',
    '1 s',
    '1 min 1 s',
    '2 h 1 min',
    '1 d 1 h',
  ]);
  expect(duration(30 * 31_556_952_000)).toBe('30 years');
  expect(timestamp(0)).toBe('1970-01-01 00:00:00 UTC');
  expect(timestamp(8.65e15)).toBe('8650000000000000 ms');
});
