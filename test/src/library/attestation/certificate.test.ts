/** Checks the form of certificates, and refuses deviations from DER that the X.509 library accepts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCertificate } from '../../../../src/library/attestation/certificate.ts';
import { awsNitroRoot } from '../../../../src/library/attestation/index.ts';
import { fromHex, toHex } from './cases/case.ts';

const ROOT = awsNitroRoot();

/** Returns the root with one byte sequence replaced by another, and with the lengths around it adapted. */
function rewriteRoot(from: string, to: string): Uint8Array {
  const hex = toHex(ROOT);
  expect(hex.split(from)).toHaveLength(2);
  const growth = (to.length - from.length) / 2;
  // Only the validity may grow: a sequence of 30 bytes that starts with a UTCTime.
  const validity = (start: string) => `30${(0x1e + growth).toString(16)}${start}`;
  const changed = hex.replace(from, to).replace(`301e${to}`, validity(to));
  const length = (value: number) => (value + growth).toString(16).padStart(4, '0');
  // The outer sequence and the signed part each have a length of two bytes: 3082LLLL 3082LLLL.
  const outer = Number.parseInt(changed.slice(4, 8), 16);
  const tbs = Number.parseInt(changed.slice(12, 16), 16);
  return fromHex(`3082${length(outer)}3082${length(tbs)}${changed.slice(16)}`);
}

function nestSequences(depth: number): Uint8Array {
  return Array.from({ length: depth }).reduce<Uint8Array>(
    (inner) => Uint8Array.of(0x30, inner.length, ...inner),
    new Uint8Array(),
  );
}

const MALFORMED = expect.objectContaining({ code: 'CERTIFICATE_MALFORMED' });

describe('the AWS root', () => {
  test('is parsed correctly', () => {
    expect(parseCertificate(ROOT, 0)).toMatchObject({
      trailing: 0,
      subjectText: 'C=US, O=Amazon, OU=AWS, CN=aws.nitro-enclaves',
      notBefore: new Date('2019-10-28T13:28:05Z'),
      notAfter: new Date('2049-10-28T14:28:05Z'),
      curve: 'P-384',
      signatureAlgorithm: '1.2.840.10045.4.3.3',
      algorithmsAgree: true,
      basicConstraints: { critical: true, ca: true, pathLength: null },
      keyUsage: { digitalSignature: true, keyCertSign: true },
      otherCritical: [],
    });
    const { issuer, subject, publicKey, tbs } = parseCertificate(ROOT, 0);
    expect(issuer).toEqual(subject);
    expect(toHex(issuer)).toMatch(/^3049310b30090603550406/);
    expect([publicKey.length, publicKey[0]]).toEqual([97, 4]);
    expect(toHex(ROOT)).toContain(toHex(tbs));
  });
});

describe('the validity of a certificate', () => {
  const START = '170d3139313032383133323830355a';
  const utc = (text: string) => `170d${Buffer.from(text).toString('hex')}`;
  const general = (text: string) => `180f${Buffer.from(text).toString('hex')}`;

  test.each([
    ['a year from 50 on belongs to the last century', utc('500101000000Z'), '1950-01-01T00:00:00Z'],
    ['a year before 50 belongs to this century', utc('491231235959Z'), '2049-12-31T23:59:59Z'],
    ['a time of four digits a year', general('20500101000000Z'), '2050-01-01T00:00:00Z'],
    ['a leap day', utc('200229000000Z'), '2020-02-29T00:00:00Z'],
  ])('is read: %s', (_, element, expected) => {
    expect(parseCertificate(rewriteRoot(START, element), 0).notBefore).toEqual(new Date(expected));
  });

  test.each([
    ['a month 13', utc('191328132805Z')],
    ['a 30th of February', utc('190230132805Z')],
    ['an hour 24', utc('191028240000Z')],
    ['a second 60', utc('191028132860Z')],
    ['another zone', utc('1910281328+0Z')],
    ['no zone', utc('1910281328050')],
    ['letters', utc('xx1028132805Z')],
    ['a short time under the tag of the long one', `180d${Buffer.from('191028132805Z').toString('hex')}`],
    ['a long time under the tag of the short one', `170f${Buffer.from('20191028132805Z').toString('hex')}`],
  ])('is refused if it has %s', (_, element) => {
    expect(() => parseCertificate(rewriteRoot(START, element), 0)).toThrow(MALFORMED);
  });
});

describe('a certificate is refused:', () => {
  const SERIAL = '021100f93175681b90afe11d46ccb4e4e7f856';
  const VERSION = `a003020102${SERIAL}`;
  /**
   * The list of extensions up to the end of the first one, basicConstraints. The second text is a byte
   * longer.
   */
  const EXTENSIONS = 'a3423040300f0603551d130101ff040530030101ff';
  const LONGER = 'a343304130100603551d130101ff040630030101ff00';
  test.each([
    ['a certificate of version 1', rewriteRoot(VERSION, `a003020100${SERIAL}`), 'its version is not 3'],
    [
      'a length in more bytes than necessary',
      rewriteRoot(SERIAL, SERIAL.replace('0211', '028111')),
      'it has a length in more bytes than necessary',
    ],
    [
      'a length of three bytes',
      fromHex(`308300${toHex(ROOT).slice(4)}`),
      'it has an indefinite or oversized length',
    ],
    [
      'an element of indefinite length',
      fromHex(`3080${toHex(ROOT).slice(8)}0000`),
      'it has an indefinite or oversized length',
    ],
    [
      'a tag of more than one byte',
      rewriteRoot(SERIAL, SERIAL.replace('0211', '1f0211')),
      'it has a tag of more than one byte',
    ],
    [
      'an element longer than its container',
      rewriteRoot(SERIAL, SERIAL.replace('0211', '02820211')),
      'an element is longer than its container',
    ],
    [
      'a byte after the value of an extension',
      rewriteRoot(EXTENSIONS, LONGER),
      'bytes follow the value of its extension 2.5.29.19',
    ],
    ['a certificate cut short', ROOT.slice(0, -1), 'an element is longer than its container'],
    ['no bytes', new Uint8Array(), 'it ends in the middle of an element'],
    ['33 nested sequences', nestSequences(33), 'it nests too deeply'],
    [
      'a private key instead of a certificate',
      fromHex('302e020100300506032b657004220420'.padEnd(96, '0')),
      'its structure is invalid',
    ],
  ])('%s', (_, bytes, reason) => {
    const message = `certificate 3 of the chain is not an X.509 v3 certificate in DER: ${reason}`;
    const refusal = expect.objectContaining({ code: 'CERTIFICATE_MALFORMED', position: 3, message });
    expect(() => parseCertificate(bytes, 3)).toThrow(refusal);
  });

  test('only with the typed error, whichever of its bytes are changed', () => {
    const flips = fc.array(fc.record({ at: fc.nat(ROOT.length - 1), to: fc.nat(255) }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(flips, (changes) => {
        const bytes = ROOT.slice();
        for (const { at, to } of changes) bytes[at] = to;
        try {
          parseCertificate(bytes, 0);
        } catch (error) {
          expect(error).toEqual(MALFORMED);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

test('parseCertificate counts the bytes after a certificate, and does not read them', () => {
  const { der, trailing } = parseCertificate(new Uint8Array([...ROOT, 1, 2, 3]), 0);
  expect(der).toEqual(ROOT);
  expect(trailing).toBe(3);
});
