import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import { decode, encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import {
  caBundle,
  createCertificate,
  createRoot,
  encodeMap,
  encodePayload,
  issueChain,
  measure,
  signDocument,
  toPem,
} from '../../../src/testing/attestation_ca.ts';

const AT = new Date('2025-04-15T02:25:23Z');
const HOUR = 3_600_000;

describe('the development authority, read by OpenSSL', () => {
  const root = createRoot(AT);
  const chain = issueChain(root, AT);
  const parsed = Object.entries(chain).map(([level, { certificate }]) => ({
    level,
    x509: new X509Certificate(certificate),
  }));

  test('every certificate is signed by the certificate before it, which it names as its issuer', () => {
    for (const [index, { x509 }] of parsed.entries()) {
      const issuer = parsed[Math.max(0, index - 1)]?.x509 as X509Certificate;
      expect(x509.checkIssued(issuer)).toBe(true);
      expect(x509.verify(issuer.publicKey)).toBe(true);
    }
  });

  test('every certificate but the leaf is an authority', () => {
    expect(parsed.map(({ level, x509 }) => [level, x509.ca])).toEqual([
      ['root', true],
      ['regional', true],
      ['zonal', true],
      ['instance', true],
      ['leaf', false],
    ]);
  });

  test('lifetimes equal those of AWS', () => {
    const hours = parsed.map(({ x509 }) => (x509.validToDate.getTime() - AT.getTime()) / HOUR);
    expect(hours.slice(1)).toEqual([480, 144, 24, 3]);
    expect(parsed.every(({ x509 }) => x509.validFromDate < AT)).toBe(true);
  });

  test('all keys are P-384, and no name can be mistaken for a name of AWS', () => {
    for (const { x509 } of parsed) {
      expect(x509.publicKey.asymmetricKeyDetails?.namedCurve).toBe('secp384r1');
      expect(x509.subject).toMatch(/O=sui-enclave\nCN=.*(DEVELOPMENT ONLY|development-only)/);
    }
  });

  test('the PEM of a certificate can be parsed', () => {
    expect(new X509Certificate(toPem(root.certificate)).raw).toEqual(Buffer.from(root.certificate));
  });

  test('a certificate can have faults', () => {
    const wrong = createCertificate({
      name: 'wrong',
      issuer: root,
      notBefore: AT,
      notAfter: AT,
      ca: null,
      keyUsage: null,
      curve: 'P-256',
      digest: 'sha256',
    });
    const x509 = new X509Certificate(wrong.certificate);
    expect(x509.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(x509.verify(root.publicKey)).toBe(true);
    expect(x509.validFromDate).toEqual(x509.validToDate);
  });
});

describe('the document writer', () => {
  const chain = issueChain(createRoot(AT), AT);
  const fields = {
    module_id: 'm',
    digest: 'SHA384',
    timestamp: AT.getTime(),
    pcrs: new Map([[0, measure('x')]]),
    certificate: chain.leaf.certificate,
    cabundle: caBundle(chain),
    nonce: null,
  };

  test.each(['definite', 'indefinite'] as const)(
    'writes a payload map of %s length, which can be decoded',
    (length) => {
      const payload = encodePayload(fields, length);
      expect(payload[0]).toBe(length === 'definite' ? 0xa7 : 0xbf);
      const decoded = decode(payload, { useMaps: true });
      expect([...decoded.keys()]).toEqual(Object.keys(fields));
      expect(decoded.get('pcrs').get(0)).toEqual(measure('x'));
      expect(decoded.get('nonce')).toBeNull();
    },
  );

  test('signs the Sig_structure with the key of the leaf', () => {
    const document = signDocument(encodePayload(fields), chain.leaf);
    const [protectedHeader, unprotected, payload, signature] = decode(document);
    expect(Buffer.from(protectedHeader).toString('hex')).toBe('a1013822');
    expect(unprotected).toEqual({});
    const key = createPublicKey(
      new X509Certificate(chain.leaf.certificate).publicKey.export({ type: 'spki', format: 'pem' }),
    );
    const message = encode(['Signature1', protectedHeader, new Uint8Array(), payload]);
    expect(verify('sha384', message, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
  });

  test('writes duplicate keys', () => {
    const twice = encodeMap([
      ['a', encode(1)],
      ['a', encode(2)],
    ]);
    expect(Buffer.from(twice).toString('hex')).toBe('a2616101616102');
  });
});
