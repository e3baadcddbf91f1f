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
import { AT, CHAIN, defineCase, defineRefusal, documentWith, fields, PUBLIC_KEY, ROOT } from './made.ts';

const SECOND = 1000;
const START = AT - 60 * SECOND;
const LEAF_END = AT + 3 * 3_600_000;

/** Makes a document under a chain in which `overrides` breaks one level. */
function signUnder(overrides: Partial<Record<IssuedLevel, Partial<CertificateOptions>>>): Uint8Array {
  return documentWith({}, issueChain(ROOT, new Date(AT), overrides));
}

/** Makes a document of `CHAIN` with these certificates as its bundle. */
function replaceBundle(...identities: (Identity | Uint8Array)[]): Uint8Array {
  return documentWith({
    cabundle: identities.map((identity) =>
      identity instanceof Uint8Array ? identity : identity.certificate,
    ),
  });
}

/** Makes a CA certificate that `issuer` signed. */
function createAuthority(issuer: Identity, options: Partial<CertificateOptions> = {}): Identity {
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

function createLeaf(issuer: Identity, options: Partial<CertificateOptions> = {}): Identity {
  return createAuthority(issuer, {
    name: 'forged.development-only.sui-enclave',
    ca: false,
    keyUsage: ['digitalSignature'],
    ...options,
  });
}

/** Makes a document whose leaf is signed by an authority that is appended to the bundle of `CHAIN`. */
function lengthenChain(authority: Identity): Uint8Array {
  const leaf = createLeaf(authority);
  return documentWith({ cabundle: [...caBundle(CHAIN), authority.certificate] }, { ...CHAIN, leaf });
}

const { root, regional, zonal, instance, leaf } = CHAIN;
const FOREIGN_ROOT = createRoot(new Date(AT));
const FOREIGN_CHAIN = issueChain(FOREIGN_ROOT, new Date(AT));

function appendByte(der: Uint8Array): Uint8Array {
  return new Uint8Array([...der, 0]);
}

/**
 * Makes a document that a P-256 leaf signed. Its 64-byte signature is padded to the 96 bytes of an ES384
 * signature.
 */
function signByP256Leaf(): Uint8Array {
  const chain: CertificateChain = { ...CHAIN, leaf: createLeaf(instance, { curve: 'P-256' }) };
  const payload = encodePayload(fields(chain));
  const short = signPayload(payload, chain.leaf);
  const signature = new Uint8Array(96);
  signature.set(short.slice(0, 32), 16);
  signature.set(short.slice(32), 64);
  return encodeCose({ payload, signature });
}

function createExtension(extnID: string, critical: boolean): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(Uint8Array.of(5, 0).buffer) });
}

const listValidityCases = (level: 'regional' | 'zonal' | 'instance' | 'leaf'): Case[] => {
  const before = new Date(AT - SECOND);
  const after = new Date(AT + SECOND);
  return [
    defineCase(`${level} in its last second`, signUnder({ [level]: { notAfter: new Date(AT) } }), {
      at: AT + 999,
    }),
    defineRefusal(
      `${level} expired by a second`,
      signUnder({ [level]: { notAfter: before } }),
      'CERTIFICATE_EXPIRED',
      2,
    ),
    defineCase(`${level} in its first second`, signUnder({ [level]: { notBefore: new Date(AT) } })),
    defineRefusal(
      `${level} not yet valid by a second`,
      signUnder({ [level]: { notBefore: after } }),
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
  defineCase('a chain at the end of its leaf', documentWith({}), { at: LEAF_END + 999 }),
  defineCase('a root that expired', documentWith({}), {
    at: AT + 31 * 365 * 86_400_000,
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  }),

  defineRefusal('a foreign root of the same name', documentWith({}, FOREIGN_CHAIN), 'CHAIN_ROOT', 2),
  defineRefusal(
    'the root in the bundle replaced by another self-signed certificate',
    replaceBundle(FOREIGN_ROOT, regional, zonal, instance),
    'CHAIN_ROOT',
    2,
  ),
  defineRefusal(
    'the pinned root over the chain of a foreign root of the same name',
    documentWith({ cabundle: [ROOT.certificate, ...caBundle(FOREIGN_CHAIN).slice(1)] }, FOREIGN_CHAIN),
    'CHAIN_SIGNATURE',
    2,
  ),
  defineCase('a document under a root other than AWS’s, while AWS’s root is pinned', documentWith({}), {
    roots: [],
    code: 'CHAIN_ROOT',
    abort: 2,
  }),
  defineRefusal(
    'a root of the same key and name with another validity',
    replaceBundle(reissueRoot(), regional, zonal, instance),
    'CHAIN_ROOT',
    null,
  ),
  defineRefusal('a bundle without the root', replaceBundle(regional, zonal, instance), 'CHAIN_ROOT', null),
  defineRefusal(
    'a chain shortened in its middle',
    replaceBundle(root, regional, instance),
    'CHAIN_ISSUER',
    2,
  ),
  defineRefusal('a chain shortened at its end', replaceBundle(root, regional, zonal), 'CHAIN_ISSUER', 2),
  defineRefusal('a chain of the root alone', replaceBundle(root), 'CHAIN_ISSUER', 2),
  defineRefusal('a chain in reverse', replaceBundle(instance, zonal, regional, root), 'CHAIN_ROOT', 2),
  defineRefusal(
    'a chain with two authorities swapped',
    replaceBundle(root, zonal, regional, instance),
    'CHAIN_ISSUER',
    2,
  ),
  defineRefusal(
    'an authority twice',
    replaceBundle(root, regional, zonal, zonal, instance),
    'CHAIN_ISSUER',
    2,
  ),
  defineRefusal(
    'the leaf in the bundle as well',
    replaceBundle(root, regional, zonal, instance, leaf),
    'CHAIN_ISSUER',
    2,
  ),
  defineRefusal(
    'the chain of another document',
    documentWith({ cabundle: caBundle(issueChain(ROOT, new Date(AT))) }),
    'CHAIN_SIGNATURE',
    2,
  ),
  defineRefusal(
    'a leaf of the right issuer name signed by another key',
    documentWith({}, { ...CHAIN, leaf: createLeaf({ ...FOREIGN_ROOT, name: instance.name }) }),
    'CHAIN_SIGNATURE',
    2,
  ),

  defineRefusal('a leaf used as an authority', lengthenChain(leaf), 'CERTIFICATE_NOT_AUTHORITY', 2),
  defineRefusal(
    'an authority without CA set',
    signUnder({ zonal: { ca: false } }),
    'CERTIFICATE_NOT_AUTHORITY',
    2,
  ),
  defineRefusal(
    'an authority without basicConstraints',
    signUnder({ zonal: { ca: null } }),
    'CERTIFICATE_NOT_AUTHORITY',
    2,
  ),
  defineRefusal(
    'an authority whose basicConstraints are not critical',
    signUnder({ zonal: { basicConstraintsCritical: false } }),
    'CERTIFICATE_NOT_AUTHORITY',
    2,
  ),
  defineRefusal('a leaf with CA set', signUnder({ leaf: { ca: true } }), 'CERTIFICATE_LEAF_IS_AUTHORITY', 2),
  defineRefusal(
    'a leaf with a path length',
    signUnder({ leaf: { pathLength: 0 } }),
    'CERTIFICATE_LEAF_IS_AUTHORITY',
    2,
  ),
  defineCase('a leaf without basicConstraints', signUnder({ leaf: { ca: null } })),
  defineRefusal(
    'an authority below an authority that allows none',
    lengthenChain(createAuthority(instance)),
    'CERTIFICATE_PATH_LENGTH',
    2,
  ),
  defineRefusal(
    'a path length of 0 two levels up',
    signUnder({ zonal: { pathLength: 0 } }),
    'CERTIFICATE_PATH_LENGTH',
    2,
  ),
  defineCase('an authority without a path length', signUnder({ zonal: { pathLength: undefined } as never })),
  defineRefusal(
    'an authority without keyCertSign',
    signUnder({ regional: { keyUsage: ['digitalSignature'] } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  defineRefusal(
    'an authority without keyUsage',
    signUnder({ instance: { keyUsage: null } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  defineRefusal(
    'a leaf without digitalSignature',
    signUnder({ leaf: { keyUsage: ['nonRepudiation'] } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  defineRefusal(
    'a leaf without keyUsage',
    signUnder({ leaf: { keyUsage: null } }),
    'CERTIFICATE_KEY_USAGE',
    2,
  ),
  defineRefusal('a leaf with a P-256 key', signByP256Leaf(), 'CERTIFICATE_KEY', 2),
  defineRefusal(
    'a leaf with a compressed key',
    signUnder({ leaf: { compressedKey: true } }),
    'CERTIFICATE_KEY',
    null,
  ),
  defineRefusal(
    'a certificate that names SHA-256 inside its signed part, and SHA-384 outside',
    signUnder({ instance: { namedDigest: 'sha256' } }),
    'CERTIFICATE_ALGORITHM',
    null,
  ),
  defineRefusal(
    'an authority with a P-256 key',
    signUnder({ zonal: { curve: 'P-256' } }),
    'CERTIFICATE_KEY',
    null,
  ),
  defineRefusal(
    'a certificate signed with SHA-256',
    signUnder({ instance: { digest: 'sha256' } }),
    'CERTIFICATE_ALGORITHM',
    null,
  ),
  defineRefusal(
    'an unknown critical extension',
    signUnder({ zonal: { moreExtensions: [createExtension('1.2.3.4', true)] } }),
    'CERTIFICATE_CRITICAL_EXTENSION',
    null,
  ),
  defineCase(
    'an unknown extension',
    signUnder({ zonal: { moreExtensions: [createExtension('1.2.3.4', false)] } }),
  ),
  defineRefusal(
    'an extension twice',
    signUnder({
      zonal: { moreExtensions: [createExtension('1.2.3.4', false), createExtension('1.2.3.4', false)] },
    }),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  ...listDuplicateExtensionCases(),
  defineRefusal(
    'a leaf that is not a certificate',
    documentWith({ certificate: PUBLIC_KEY }),
    'CERTIFICATE_MALFORMED',
    2,
  ),
  defineRefusal(
    'an authority that is not a certificate',
    replaceBundle(root, regional, PUBLIC_KEY, instance),
    'CERTIFICATE_MALFORMED',
    2,
  ),
  defineRefusal(
    'a byte after the leaf',
    documentWith({ certificate: appendByte(leaf.certificate) }),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  defineRefusal(
    'a byte after an authority',
    replaceBundle(root, regional, appendByte(zonal.certificate), instance),
    'CERTIFICATE_MALFORMED',
    null,
  ),
  defineRefusal(
    'a certificate with a changed serial number',
    replaceBundle(root, regional, changeSerial(zonal.certificate), instance),
    'CHAIN_SIGNATURE',
    2,
  ),
];

/**
 * Makes cases with duplicate extensions. Sui's verifier reads only keyUsage and basicConstraints, and
 * treats either as missing if it occurs twice.
 */
function listDuplicateExtensionCases(): Case[] {
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
  const more = (level: IssuedLevel, ...moreExtensions: Extension[]) =>
    signUnder({ [level]: { moreExtensions } });
  const code = 'CERTIFICATE_MALFORMED';
  return [
    defineRefusal('a leaf with keyUsage twice', more('leaf', keyUsage), code, 2),
    defineRefusal('an authority with keyUsage twice', more('zonal', keyUsage), code, 2),
    defineRefusal('an authority with basicConstraints twice', more('zonal', constraints(true)), code, 2),
    defineRefusal('a leaf with basicConstraints twice', more('leaf', constraints(false)), code, null),
    defineRefusal(
      'a leaf with basicConstraints twice, once with CA set',
      more('leaf', constraints(true)),
      code,
      null,
    ),
  ];
}

function reissueRoot(): Identity {
  return createRoot(new Date(AT - SECOND), { keyOf: ROOT });
}

/** Changes one bit of the serial number: the certificate parses, but the signature doesn't match. */
function changeSerial(der: Uint8Array): Uint8Array {
  const copy = der.slice();
  // The serial number ends before the first occurrence of the OID of the signature's algorithm.
  const oid = Buffer.from(copy).indexOf(Buffer.from('300a06082a8648ce3d040303', 'hex'));
  copy[oid - 1] = (copy[oid - 1] ?? 0) ^ 1;
  return copy;
}
