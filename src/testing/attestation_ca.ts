/**
 * A throw-away certificate authority with the structure of AWS's authority for Nitro Enclaves, and a writer
 * of attestation documents (COSE_Sign1, RFC 9052 section 4.2) that it signs.
 *
 * It is only for development and tests, and every name in it says that it is not AWS. Tests can set
 * wrong values for all properties that a verifier checks.
 */

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  Extension,
  Extensions,
  id_ce_basicConstraints,
  id_ce_keyUsage,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import { encode } from 'cborg';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const ID_COMMON_NAME = '2.5.4.3';
const ID_ORGANIZATION = '2.5.4.10';
const SIGNATURE_OIDS = { sha256: '1.2.840.10045.4.3.2', sha384: '1.2.840.10045.4.3.3' } as const;

export type KeyUsageName = keyof typeof KeyUsageFlags;

/** A certificate with the private key that belongs to it. */
export interface Identity {
  /** DER of the X.509 certificate. */
  certificate: Uint8Array;
  /** Common name, which is the issuer name of everything that this identity signs. */
  name: string;
  publicKey: KeyObject;
  privateKey: KeyObject;
}

export interface CertificateOptions {
  /** Common name of the subject. */
  name: string;
  /** Identity that signs the certificate. Without an issuer, the certificate is self-signed. */
  issuer?: Identity;
  /** Beginning of validity, written in whole seconds as in X.509 (RFC 5280 section 4.1.2.5). */
  notBefore: Date;
  notAfter: Date;
  /** basicConstraints; `null` leaves the extension out. */
  ca: boolean | null;
  pathLength?: number;
  /** Whether basicConstraints is marked critical. Default: true. */
  basicConstraintsCritical?: boolean;
  /** keyUsage; `null` leaves the extension out. */
  keyUsage: readonly KeyUsageName[] | null;
  /** Curve of the new key. Default: P-384. */
  curve?: 'P-256' | 'P-384';
  /** Identity whose key is certified instead of a new key. */
  keyOf?: Pick<Identity, 'publicKey' | 'privateKey'>;
  /** Digest algorithm of the signature over the certificate. Default: SHA-384. */
  digest?: keyof typeof SIGNATURE_OIDS;
  /** Digest algorithm that the signed part names, if it differs from the signature's own. */
  namedDigest?: keyof typeof SIGNATURE_OIDS;
  /** Whether to write the public key as a compressed point (SEC 1 section 2.3.3). */
  compressedKey?: boolean;
  /** Extensions that are written after basicConstraints and keyUsage. */
  moreExtensions?: readonly Extension[];
}

/** Makes a certificate. Checks nothing, since tests need invalid certificates. */
export function createCertificate(options: CertificateOptions): Identity {
  const { publicKey, privateKey } =
    options.keyOf ?? generateKeyPairSync('ec', { namedCurve: options.curve ?? 'P-384' });
  const digest = options.digest ?? 'sha384';
  const signature = new AlgorithmIdentifier({ algorithm: SIGNATURE_OIDS[digest] });
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: positiveSerial(),
    signature: new AlgorithmIdentifier({ algorithm: SIGNATURE_OIDS[options.namedDigest ?? digest] }),
    issuer: distinguishedName(options.issuer?.name ?? options.name),
    validity: new Validity({ notBefore: options.notBefore, notAfter: options.notAfter }),
    subject: distinguishedName(options.name),
    subjectPublicKeyInfo: publicKeyInfo(publicKey, options.compressedKey ?? false),
    extensions: new Extensions(extensions(options)),
  });
  const key = options.issuer?.privateKey ?? privateKey;
  const signatureValue = sign(digest, Buffer.from(AsnConvert.serialize(tbsCertificate)), {
    key,
    dsaEncoding: 'der',
  });
  const certificate = AsnConvert.serialize(
    new Certificate({
      tbsCertificate,
      signatureAlgorithm: signature,
      signatureValue: new Uint8Array(signatureValue).buffer,
    }),
  );
  return { certificate: new Uint8Array(certificate), name: options.name, publicKey, privateKey };
}

function publicKeyInfo(publicKey: KeyObject, compressed: boolean): SubjectPublicKeyInfo {
  const info = AsnConvert.parse(publicKey.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);
  const point = new Uint8Array(info.subjectPublicKey);
  if (compressed) {
    const x = point.slice(1, 1 + point.length / 2);
    const yIsOdd = ((point.at(-1) ?? 0) & 1) === 1;
    info.subjectPublicKey = Uint8Array.of(yIsOdd ? 0x03 : 0x02, ...x).buffer;
  }
  return info;
}

function distinguishedName(commonName: string): Name {
  const attribute = (type: string, text: string) =>
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: text }) }),
    ]);
  return new Name([attribute(ID_ORGANIZATION, 'sui-enclave'), attribute(ID_COMMON_NAME, commonName)]);
}

function extensions(options: CertificateOptions): Extension[] {
  const list: Extension[] = [];
  if (options.ca !== null) {
    const constraints = new BasicConstraints({ cA: options.ca });
    if (options.pathLength !== undefined) constraints.pathLenConstraint = options.pathLength;
    list.push(
      new Extension({
        extnID: id_ce_basicConstraints,
        critical: options.basicConstraintsCritical ?? true,
        extnValue: new OctetString(AsnConvert.serialize(constraints)),
      }),
    );
  }
  if (options.keyUsage !== null) {
    const flags = options.keyUsage.reduce((sum, name) => sum | KeyUsageFlags[name], 0);
    list.push(
      new Extension({
        extnID: id_ce_keyUsage,
        critical: true,
        extnValue: new OctetString(AsnConvert.serialize(new KeyUsage(flags))),
      }),
    );
  }
  return [...list, ...(options.moreExtensions ?? [])];
}

/**
 * Returns 16 random bytes that read as a positive INTEGER without a leading zero (RFC 5280 section 4.1.2.2).
 */
function positiveSerial(): ArrayBuffer {
  const serial = new Uint8Array(randomBytes(16));
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial.buffer;
}

/** Certificates of a document, from the trust anchor to the key that signs the document. */
export interface CertificateChain {
  root: Identity;
  regional: Identity;
  zonal: Identity;
  instance: Identity;
  leaf: Identity;
}

export type IssuedLevel = Exclude<keyof CertificateChain, 'root'>;

/** Common name of every root that is made here. */
export const ROOT_NAME = 'sui-enclave DEVELOPMENT ONLY root, not AWS';

/** Returns a self-signed root, valid from a minute before `at` for 30 years. */
export function createRoot(at: Date, overrides: Partial<CertificateOptions> = {}): Identity {
  return createCertificate({
    name: ROOT_NAME,
    notBefore: new Date(at.getTime() - MINUTE),
    notAfter: new Date(at.getTime() + 30 * YEAR),
    ca: true,
    keyUsage: ['digitalSignature', 'keyCertSign', 'cRLSign'],
    ...overrides,
  });
}

/**
 * Returns a whole chain under `root`. Each level is valid from a minute before `at`, for as long as AWS's
 * certificates: regional 20 days, zonal 6 days, instance 1 day, leaf 3 hours.
 *
 * @param overrides options that differ, by level
 */
export function issueChain(
  root: Identity,
  at: Date,
  overrides: Partial<Record<IssuedLevel, Partial<CertificateOptions>>> = {},
): CertificateChain {
  const from = new Date(at.getTime() - MINUTE);
  const authority = (level: IssuedLevel, issuer: Identity, pathLength: number, lifetime: number) =>
    createCertificate({
      name: `${level}.development-only.sui-enclave`,
      issuer,
      notBefore: from,
      notAfter: new Date(at.getTime() + lifetime),
      ca: true,
      pathLength,
      keyUsage: ['digitalSignature', 'keyCertSign', 'cRLSign'],
      ...overrides[level],
    });
  const regional = authority('regional', root, 2, 20 * DAY);
  const zonal = authority('zonal', regional, 1, 6 * DAY);
  const instance = authority('instance', zonal, 0, DAY);
  const leaf = createCertificate({
    name: 'leaf.development-only.sui-enclave',
    issuer: instance,
    notBefore: from,
    notAfter: new Date(at.getTime() + 3 * HOUR),
    ca: false,
    keyUsage: ['digitalSignature', 'nonRepudiation'],
    ...overrides.leaf,
  });
  return { root, regional, zonal, instance, leaf };
}

/** Returns the `cabundle` of a document: every authority, the root first. */
export function caBundle(chain: CertificateChain): Uint8Array[] {
  return [chain.root, chain.regional, chain.zonal, chain.instance].map((identity) => identity.certificate);
}

/** Returns a DER certificate in PEM (RFC 7468). */
export function toPem(certificate: Uint8Array): string {
  const lines =
    Buffer.from(certificate)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/**
 * Returns the value of a register after one measurement of `content`. Before, the register has 48 zero bytes.
 */
export function measure(content: string | Uint8Array): Uint8Array {
  const digest = createHash('sha384').update(content).digest();
  return new Uint8Array(createHash('sha384').update(Buffer.alloc(48)).update(digest).digest());
}

/** Fields of an attestation document, by their names in its payload map. */
export interface DocumentFields {
  module_id: string;
  digest: string;
  /** Time of the document, in milliseconds since 1970. */
  timestamp: number | bigint;
  pcrs: ReadonlyMap<number, Uint8Array>;
  certificate: Uint8Array;
  cabundle: readonly Uint8Array[];
  public_key?: Uint8Array | null;
  user_data?: Uint8Array | null;
  nonce?: Uint8Array | null;
}

/**
 * Encoding of a CBOR map's length. Older NSM firmware writes definite lengths, and newer firmware indefinite
 * lengths.
 */
export type MapLength = 'definite' | 'indefinite';

/** Returns the payload of a document. Leaves out fields that are `undefined`, and writes `null` as null. */
export function encodePayload(fields: DocumentFields, length: MapLength = 'definite'): Uint8Array {
  const entries = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]): MapEntry => [key, encode(value)]);
  return encodeMap(entries, length);
}

/** A key, and its value in CBOR. */
export type MapEntry = readonly [key: string | number, value: Uint8Array];

/** Returns a CBOR map with the entries in the given order, including duplicate keys. */
export function encodeMap(entries: readonly MapEntry[], length: MapLength = 'definite'): Uint8Array {
  const body = entries.flatMap(([key, value]) => [encode(key), value]);
  return length === 'definite'
    ? concat([head(5, entries.length), ...body])
    : concat([Uint8Array.of(0xbf), ...body, Uint8Array.of(0xff)]);
}

/** Returns the initial bytes of a CBOR item (RFC 8949 section 3), for arguments under 65536. */
export function head(majorType: number, argument: number): Uint8Array {
  const first = majorType << 5;
  if (argument < 24) return Uint8Array.of(first | argument);
  if (argument < 0x100) return Uint8Array.of(first | 24, argument);
  return Uint8Array.of(first | 25, argument >> 8, argument & 0xff);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** Protected header {1: -35} (ES384, RFC 9053 section 2.1). */
const PROTECTED_HEADER: Uint8Array = Uint8Array.from([0xa1, 0x01, 0x38, 0x22]);

/** The four parts of a COSE_Sign1. */
export interface CoseParts {
  protectedHeader?: Uint8Array;
  /** CBOR of the unprotected map. Default: empty. */
  unprotectedHeader?: Uint8Array;
  payload: Uint8Array;
  /** Signature of r followed by s, 48 bytes each. */
  signature: Uint8Array;
}

/** Returns an untagged COSE_Sign1, as the NSM writes it. */
export function encodeCose(parts: CoseParts): Uint8Array {
  return concat([
    head(4, 4),
    encode(parts.protectedHeader ?? PROTECTED_HEADER),
    parts.unprotectedHeader ?? head(5, 0),
    encode(parts.payload),
    encode(parts.signature),
  ]);
}

/**
 * Returns the signature of `payload` by the key of a leaf: raw r ‖ s over the Sig_structure (RFC 9052 section
 * 4.4).
 */
export function signPayload(
  payload: Uint8Array,
  signer: Identity,
  protectedHeader: Uint8Array = PROTECTED_HEADER,
): Uint8Array {
  const message = encode(['Signature1', protectedHeader, new Uint8Array(), payload]);
  return new Uint8Array(sign('sha384', message, { key: signer.privateKey, dsaEncoding: 'ieee-p1363' }));
}

/** Returns a signed document with `payload`, like an answer of an NSM. */
export function signDocument(payload: Uint8Array, signer: Identity): Uint8Array {
  return encodeCose({ payload, signature: signPayload(payload, signer) });
}
