/** Cases of the certificate chain: rules 22 to 33. */
import { OctetString } from '@peculiar/asn1-schema';
import { Extension, id_ce_basicConstraints, id_ce_keyUsage } from '@peculiar/asn1-x509';
import {
  type CertificateChain,
  type CertificateOptions,
  caBundle,
  createCertificate,
  createRoot,
  encodeCose,
  encodePayload,
  type Identity,
  type IssuedLevel,
  issueChain,
  signPayload,
} from '../../../../../src/testing/attestation_ca.ts';
import type { Case } from './case.ts';
import { AT, CHAIN, documentWith, fields, made, PUBLIC_KEY, ROOT, refused } from './made.ts';

const SECOND = 1000;
const START = AT - 60 * SECOND;
const LEAF_END = AT + 3 * 3_600_000;

/** Makes a document under a chain in which `overrides` breaks one level. */
function under(overrides: Partial<Record<IssuedLevel, Partial<CertificateOptions>>>): Uint8Array {
  return documentWith({}, issueChain(ROOT, new Date(AT), overrides));
}

/** Makes a document of `CHAIN` with another bundle. */
function bundled(...identities: (Identity | Uint8Array)[]): Uint8Array {
  return documentWith({
    cabundle: identities.map((identity) =>
      identity instanceof Uint8Array ? identity : identity.certificate,
    ),
  });
}

/** Makes a CA certificate that `issuer` signed. */
function authorityBelow(issuer: Identity, options: Partial<CertificateOptions> = {}): Identity {
  return createCertificate({
    name: 'sub.development-only.sui-enclave',
    issuer,
    notBefore: new Date(START),
    notAfter: new Date(LEAF_END),
    ca: true,
    keyUsage: ['keyCertSign'],
    ...options,
  });
}

function leafBelow(issuer: Identity, options: Partial<CertificateOptions> = {}): Identity {
  return authorityBelow(issuer, {
    name: 'forged.development-only.sui-enclave',
    ca: false,
    keyUsage: ['digitalSignature'],
    ...options,
  });
}

/** Makes a document whose leaf is signed by an authority that is appended to the bundle of `CHAIN`. */
function lengthened(authority: Identity): Uint8Array {
  const leaf = leafBelow(authority);
  return documentWith({ cabundle: [...caBundle(CHAIN), authority.certificate] }, { ...CHAIN, leaf });
}

const { root, regional, zonal, instance, leaf } = CHAIN;
const FOREIGN_ROOT = createRoot(new Date(AT));
const FOREIGN_CHAIN = issueChain(FOREIGN_ROOT, new Date(AT));

function trailing(der: Uint8Array): Uint8Array {
  return new Uint8Array([...der, 0]);
}

/**
 * Makes the document of a P-256 leaf. Its signature of 64 bytes is padded to the 96 of an ES384 signature.
 */
function p256Leaf(): Uint8Array {
  const chain: CertificateChain = { ...CHAIN, leaf: leafBelow(instance, { curve: 'P-256' }) };
  const payload = encodePayload(fields(chain));
  const short = signPayload(payload, chain.leaf);
  const signature = new Uint8Array(96);
  signature.set(short.slice(0, 32), 16);
  signature.set(short.slice(32), 64);
  return encodeCose({ payload, signature });
}

function extension(extnID: string, critical: boolean): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(Uint8Array.of(5, 0).buffer) });
}

const listValidityCases = (level: 'regional' | 'zonal' | 'instance' | 'leaf'): Case[] => {
  const before = new Date(AT - SECOND);
  const after = new Date(AT + SECOND);
  return [
    made(`${level} in its last second`, under({ [level]: { notAfter: new Date(AT) } }), { at: AT + 999 }),
    refused(
      `${level} expired by a second`,
      under({ [level]: { notAfter: before } }),
      'CERTIFICATE_EXPIRED',
      2,
    ),
    made(`${level} in its first second`, under({ [level]: { notBefore: new Date(AT) } })),
    refused(
      `${level} not yet valid by a second`,
      under({ [level]: { notBefore: after } }),
      'CERTIFICATE_NOT_YET_VALID',
      2,
    ),
  ];
};

export const chainCases: Case[] = [
  ...listValidityCases('regional'),
  ...listValidityCases('zonal'),
  ...listValidityCases('instance'),
  ...listValidityCases('leaf'),
  made('a chain at the end of its leaf', documentWith({}), { at: LEAF_END + 999 }),
  made('a root that expired', documentWith({}), {
    at: AT + 31 * 365 * 86_400_000,
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  }),

  refused('a foreign root of the same name', documentWith({}, FOREIGN_CHAIN), 'CHAIN_ROOT', 2),
  refused(
    'the root in the bundle replaced by another self-signed one',
    bundled(FOREIGN_ROOT, regional, zonal, instance),
    'CHAIN_ROOT',
    2,
  ),
  refused(
    'the pinned root over the chain of a foreign root of the same name',
    documentWith({ cabundle: [ROOT.certificate, ...caBundle(FOREIGN_CHAIN).slice(1)] }, FOREIGN_CHAIN),
    'CHAIN_SIGNATURE',
    2,
  ),
  made('a document under a root other than AWS’s, while AWS’s root is pinned', documentWith({}), {
    roots: [],
    code: 'CHAIN_ROOT',
    abort: 2,
  }),
  refused(
    'a root of the same key and name with another validity',
    bundled(reissuedRoot(), regional, zonal, instance),
    'CHAIN_ROOT',
    null,
  ),
  refused('a bundle without the root', bundled(regional, zonal, instance), 'CHAIN_ROOT', null),
  refused('a chain shortened in its middle', bundled(root, regional, instance), 'CHAIN_ISSUER', 2),
  refused('a chain shortened at its end', bundled(root, regional, zonal), 'CHAIN_ISSUER', 2),
  refused('a chain of the root alone', bundled(root), 'CHAIN_ISSUER', 2),
  refused('a chain in reverse', bundled(instance, zonal, regional, root), 'CHAIN_ROOT', 2),
  refused(
    'a chain with two authorities swapped',
    bundled(root, zonal, regional, instance),
    'CHAIN_ISSUER',
    2,
  ),
  refused('an authority twice', bundled(root, regional, zonal, zonal, instance), 'CHAIN_ISSUER', 2),
  refused(
    'the leaf in the bundle as well',
    bundled(root, regional, zonal, instance, leaf),
    'CHAIN_ISSUER',
    2,
  ),
  refused(
    'the chain of another document',
    documentWith({ cabundle: caBundle(issueChain(ROOT, new Date(AT))) }),
    'CHAIN_SIGNATURE',
    2,
  ),
  refused(
    'a leaf of the right issuer name signed by another key',
    documentWith({}, { ...CHAIN, leaf: leafBelow({ ...FOREIGN_ROOT, name: instance.name }) }),
    'CHAIN_SIGNATURE',
    2,
  ),

  refused('a leaf used as an authority', lengthened(leaf), 'CERTIFICATE_NOT_AUTHORITY', 2),
  refused('an authority without CA set', under({ zonal: { ca: false } }), 'CERTIFICATE_NOT_AUTHORITY', 2),
  refused(
    'an authority without basicConstraints',
    under({ zonal: { ca: null } }),
    'CERTIFICATE_NOT_AUTHORITY',
    2,
  ),
  refused(
    'an authority whose basicConstraints are not critical',
    under({ zonal: { basicConstraintsCritical: false } }),
    'CERTIFICATE_NOT_AUTHORITY',
    2,
  ),
  refused('a leaf with CA set', under({ leaf: { ca: true } }), 'CERTIFICATE_LEAF_IS_AUTHORITY', 2),
  refused(
    'a leaf with a path length',
    under({ leaf: { pathLength: 0 } }),
    'CERTIFICATE_LEAF_IS_AUTHORITY',
    2,
  ),
  made('a leaf without basicConstraints', under({ leaf: { ca: null } })),
  refused(
    'an authority below an authority that allows none',
    lengthened(authorityBelow(instance)),
    'CERTIFICATE_PATH_LENGTH',
    2,
  ),
  refused(
    'a path length of 0 two levels up',
    under({ zonal: { pathLength: 0 } }),
    'CERTIFICATE_PATH_LENGTH',
    2,
  ),
  made('an authority without a path length', under({ zonal: { pathLength: undefined } as never })),
  refused(
    'an authority without keyCertSign',
    under({ regional: { keyUsage: ['digitalSignature'] } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  refused(
    'an authority without keyUsage',
    under({ instance: { keyUsage: null } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  refused(
    'a leaf without digitalSignature',
    under({ leaf: { keyUsage: ['nonRepudiation'] } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  refused('a leaf without keyUsage', under({ leaf: { keyUsage: null } }), 'CERTIFICATE_KEY_USAGE', 2),
  refused('a leaf with a P-256 key', p256Leaf(), 'CERTIFICATE_KEY', 2),
  refused('a leaf with a compressed key', under({ leaf: { compressedKey: true } }), 'CERTIFICATE_KEY', null),
  refused(
    'a certificate that names SHA-256 inside, SHA-384 outside',
    under({ instance: { namedDigest: 'sha256' } }),
    'CERTIFICATE_ALGORITHM',
    null,
  ),
  refused('an authority with a P-256 key', under({ zonal: { curve: 'P-256' } }), 'CERTIFICATE_KEY', null),
  refused(
    'a certificate signed with SHA-256',
    under({ instance: { digest: 'sha256' } }),
    'CERTIFICATE_ALGORITHM',
    null,
  ),
  refused(
    'an unknown critical extension',
    under({ zonal: { moreExtensions: [extension('1.2.3.4', true)] } }),
    'CERTIFICATE_CRITICAL_EXTENSION',
    null,
  ),
  made('an unknown extension', under({ zonal: { moreExtensions: [extension('1.2.3.4', false)] } })),
  refused(
    'an extension twice',
    under({ zonal: { moreExtensions: [extension('1.2.3.4', false), extension('1.2.3.4', false)] } }),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  ...twice(),
  refused(
    'a leaf that is not a certificate',
    documentWith({ certificate: PUBLIC_KEY }),
    'CERTIFICATE_MALFORMED',
    2,
  ),
  refused(
    'an authority that is not a certificate',
    bundled(root, regional, PUBLIC_KEY, instance),
    'CERTIFICATE_MALFORMED',
    2,
  ),
  refused(
    'a byte after the leaf',
    documentWith({ certificate: trailing(leaf.certificate) }),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  refused(
    'a byte after an authority',
    bundled(root, regional, trailing(zonal.certificate), instance),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  refused(
    'a certificate with a changed serial number',
    bundled(root, regional, changed(zonal.certificate), instance),
    'CHAIN_SIGNATURE',
    2,
  ),
];

/**
 * Makes cases with duplicate extensions. Sui's verifier looks only for keyUsage and basicConstraints, and
 * finds neither of them if it is there twice.
 */
function twice(): Case[] {
  const keyUsage = new Extension({
    extnID: id_ce_keyUsage,
    critical: true,
    // The value is a bit string with digitalSignature and keyCertSign.
    extnValue: new OctetString(Uint8Array.of(3, 2, 2, 0x84).buffer),
  });
  const constraints = (ca: boolean) =>
    new Extension({
      extnID: id_ce_basicConstraints,
      critical: true,
      extnValue: new OctetString(Uint8Array.from(ca ? [0x30, 3, 1, 1, 0xff] : [0x30, 0]).buffer),
    });
  const more = (level: IssuedLevel, ...moreExtensions: Extension[]) => under({ [level]: { moreExtensions } });
  const code = 'CERTIFICATE_MALFORMED';
  return [
    refused('a leaf with keyUsage twice', more('leaf', keyUsage), code, 2),
    refused('an authority with keyUsage twice', more('zonal', keyUsage), code, 2),
    refused('an authority with basicConstraints twice', more('zonal', constraints(true)), code, 2),
    refused('a leaf with basicConstraints twice', more('leaf', constraints(false)), code, null),
    refused(
      'a leaf with basicConstraints twice, of an authority',
      more('leaf', constraints(true)),
      code,
      null,
    ),
  ];
}

function reissuedRoot(): Identity {
  return createRoot(new Date(AT - SECOND), { keyOf: ROOT });
}

/** Changes one bit of the serial number: the certificate parses, but the signature doesn't match. */
function changed(der: Uint8Array): Uint8Array {
  const copy = der.slice();
  // The serial number ends before the first occurrence of the OID of the signature's algorithm.
  const oid = Buffer.from(copy).indexOf(Buffer.from('300a06082a8648ce3d040303', 'hex'));
  copy[oid - 1] = (copy[oid - 1] ?? 0) ^ 1;
  return copy;
}
