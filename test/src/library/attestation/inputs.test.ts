/** Inputs from people, namely PCR files and PEM files, and the pinned root. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AWS_NITRO_ROOT_SHA256,
  awsNitroRoot,
  certificatesFromPem,
  decodeAttestation,
  parsePcrs,
} from '../../../../src/library/attestation/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { fromHex } from './cases/case.ts';
import { realCases } from './cases/real.ts';

const ZERO = '0'.repeat(96);
const [A, B, C] = ['a1', 'b2', 'c3'].map((byte) => byte.repeat(48)) as [string, string, string];

describe('parsePcrs', () => {
  test('reads the output of an image build', () => {
    expect(parsePcrs(`${A} PCR0\n${B} PCR1\n${C} PCR2\n`)).toEqual({ pcr0: A, pcr1: B, pcr2: C });
    expect(parsePcrs(new EmulatedNsm().pcrsFile()).pcr0).toMatch(/^[0-9a-f]{96}$/);
  });

  test('names the missing registers', () => {
    expect(() => parsePcrs(`${A} PCR0\n${B} PCR1`)).toThrow('the PCR file must name PCR0, PCR1 and PCR2');
  });

  test('accepts any order, capital letters, empty lines and carriage returns', () => {
    expect(parsePcrs(`\r\n${C.toUpperCase()}  PCR2\r\n\r\n${A} PCR0\r\n${B}\tPCR1`)).toEqual({
      pcr0: A,
      pcr1: B,
      pcr2: C,
    });
  });

  test.each([
    ['an empty file', ''],
    ['a file without PCR2', `${A} PCR0\n${B} PCR1`],
    ['a register twice', `${A} PCR0\n${B} PCR1\n${C} PCR2\n${A} PCR0`],
    ['a register that is not 0 to 2', `${A} PCR0\n${B} PCR1\n${C} PCR2\n${A} PCR8`],
    ['a value cut short', `${A.slice(1)} PCR0\n${B} PCR1\n${C} PCR2`],
    ['a value that is not hexadecimal', `${'g'.repeat(96)} PCR0\n${B} PCR1\n${C} PCR2`],
    ['JSON', '{"PCR0": "a1"}'],
  ])('refuses %s', (_, text) => {
    expect(() => parsePcrs(text)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }));
  });

  test.each([
    ['a register of zeros', `${A} PCR0\n${B} PCR1\n${ZERO} PCR2`],
    ['all zeros', `${ZERO} PCR0\n${ZERO} PCR1\n${ZERO} PCR2`],
  ])('refuses %s', (_, text) => {
    expect(() => parsePcrs(text)).toThrow(expect.objectContaining({ code: 'POLICY_ZERO_IMAGE' }));
  });

  test('refuses any text that is not a PCR file', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => parsePcrs(text)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }));
      }),
    );
  });
});

describe('certificatesFromPem', () => {
  test('reads one certificate, or several with text between them', () => {
    const pem = new EmulatedNsm().rootPem();
    const [der] = certificatesFromPem(pem);
    expect(Buffer.from(der as Uint8Array)).toEqual(new X509Certificate(pem).raw);
    expect(certificatesFromPem(`a comment\n${pem}\n${pem}`)).toEqual([der, der]);
  });

  test.each([
    ['an empty file', ''],
    ['a private key', '-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----'],
    ['broken base64', '-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----'],
    ['a certificate without an end', '-----BEGIN CERTIFICATE-----\nMA=='],
  ])('refuses %s', (_, text) => {
    expect(() => certificatesFromPem(text)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }));
  });
});

test('a Buffer is copied into plain Uint8Arrays', () => {
  const buffer = Buffer.from(realCases[0]?.document ?? '', 'hex');
  const document = decodeAttestation(buffer);
  const { payload, signature, certificate, publicKey } = document;
  for (const bytes of [
    payload,
    signature,
    certificate,
    publicKey,
    ...document.cabundle,
    ...document.pcrs.values(),
  ]) {
    expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
  }
  const before = certificate.slice();
  buffer.fill(0);
  expect(certificate).toEqual(before);
});

describe('the pinned root', () => {
  test('has the published SHA-256', () => {
    expect(createHash('sha256').update(awsNitroRoot()).digest('hex')).toBe(AWS_NITRO_ROOT_SHA256);
    expect(AWS_NITRO_ROOT_SHA256).toBe('641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b');
  });

  test('has, as a PEM file without a newline at its end, the SHA-256 that AWS and Sui publish', () => {
    const lines =
      Buffer.from(awsNitroRoot())
        .toString('base64')
        .match(/.{1,64}/g) ?? [];
    const pem = ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----'].join('\n');
    const digest = createHash('sha256').update(pem).digest('hex');
    expect(digest).toBe('6eb9688305e4bbca67f44b59c29a0661ae930f09b5945b5d1d9ae01125c8d6c0');
    const page = readFileSync(
      new URL('../../../../src/library/attestation/README.md', import.meta.url),
      'utf8',
    );
    expect(page).toContain(`SHA-256 of the DER:       ${AWS_NITRO_ROOT_SHA256}\n`);
    expect(page).toContain(`SHA-256 of the PEM file:  ${digest}\n`);
  });

  test('is the first certificate in the bundle of real documents', () => {
    const documents = new Set(realCases.flatMap(({ document, abort }) => (abort === 1 ? [] : [document])));
    for (const document of documents) {
      expect(decodeAttestation(fromHex(document)).cabundle[0]).toEqual(awsNitroRoot());
    }
  });

  test('signed itself', () => {
    const certificate = new X509Certificate(awsNitroRoot());
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });
});
