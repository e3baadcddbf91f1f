/**
 * Reads from an X.509 certificate (RFC 5280 section 4) the few facts that the rules for the chain need. It
 * checks the form only: `@peculiar/asn1-x509` parses the structure, and this module enforces the DER rules
 * that the library doesn't.
 */
import { bytesToHex } from '@noble/curves/utils.js';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  type AlgorithmIdentifier,
  BasicConstraints,
  Certificate,
  type Extension,
  id_ce_basicConstraints,
  id_ce_keyUsage,
  KeyUsage,
  KeyUsageFlags,
  type Name,
  Version,
} from '@peculiar/asn1-x509';
import type { Curve } from './ecdsa.ts';
import { CertificateError } from './errors.ts';

export interface ParsedCertificate {
  /** The certificate itself, without trailing bytes. */
  readonly der: Uint8Array;
  /** The number of bytes after the certificate. */
  readonly trailing: number;
  /** DER of the signed part. */
  readonly tbs: Uint8Array;
  /**
   * DER of the names, for a comparison byte by byte. RFC 5280 section 7.1 also allows looser comparisons,
   * which AWS doesn't need.
   */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** The subject as text, such as `C=US, O=Amazon, …`. */
  readonly subjectText: string;
  /** Start of the validity, inclusive (RFC 5280 section 4.1.2.5). */
  readonly notBefore: Date;
  /** End of the validity, inclusive. */
  readonly notAfter: Date;
  /** The curve of an EC key; null for any other key. */
  readonly curve: Curve | null;
  /** The public key's bits. For an EC key, these are the point (SEC 1 section 2.3.3). */
  readonly publicKey: Uint8Array;
  /** OID of the signature's algorithm, as given beside the signature. */
  readonly signatureAlgorithm: string;
  /** Whether the signed part names the same algorithm (RFC 5280 section 4.1.1.2). */
  readonly algorithmsAgree: boolean;
  /** The signature's bits: for ECDSA, a DER sequence of r and s. */
  readonly signature: Uint8Array;
  readonly basicConstraints: { critical: boolean; ca: boolean; pathLength: number | null } | null;
  readonly keyUsage: { digitalSignature: boolean; keyCertSign: boolean } | null;
  /** OIDs of critical extensions other than the two above. */
  readonly otherCritical: readonly string[];
  /**
   * OIDs of extensions that occur more than once, although RFC 5280 section 4.2 forbids it. Only the
   * first of each is read.
   */
  readonly repeated: readonly string[];
}

const ID_EC_PUBLIC_KEY = '1.2.840.10045.2.1';
/** The supported curves, by the DER of their OIDs prime256v1 and secp384r1 (RFC 5480 section 2.1.1.1). */
const CURVES = new Map<string, Curve>([
  ['06082a8648ce3d030107', 'P-256'],
  ['06052b81040022', 'P-384'],
]);
const ATTRIBUTE_NAMES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
};

/**
 * Parses a certificate.
 *
 * @param bytes DER, perhaps followed by other bytes
 * @param position of the certificate in its chain: 0 is the root
 * @throws CertificateError: CERTIFICATE_MALFORMED
 */
export function parseCertificate(bytes: Uint8Array, position: number): ParsedCertificate {
  try {
    return readCertificate(bytes);
  } catch (cause) {
    if (cause instanceof DerError) throw malformedCertificate(position, cause.message);
    throw malformedCertificate(position, 'its structure is invalid', { cause });
  }
}

export function malformedCertificate(
  position: number,
  problem: string,
  options?: ErrorOptions,
): CertificateError {
  const message = `is not an X.509 v3 certificate in DER: ${problem}`;
  return new CertificateError('CERTIFICATE_MALFORMED', position, message, options);
}

class DerError extends Error {}

function readCertificate(bytes: Uint8Array): ParsedCertificate {
  const der = bytes.slice(0, derEnd(bytes, 0, bytes.length, 0));
  const certificate = AsnConvert.parse(der, Certificate);
  const { tbsCertificate, tbsCertificateRaw } = certificate;
  if (tbsCertificate.version !== Version.v3) throw new DerError('its version is not 3');
  if (tbsCertificateRaw === undefined) throw new DerError('its signed part is missing');
  const tbs = new Uint8Array(tbsCertificateRaw);
  // version, serialNumber, signature, issuer, validity, subject (RFC 5280 section 4.1).
  const [, , , issuer, validity, subject] = splitElements(tbs);
  if (!issuer || !validity || !subject) throw new DerError('its names or its validity are missing');
  const [notBefore, notAfter] = splitElements(validity);
  const { subjectPublicKeyInfo, signature } = tbsCertificate;
  const { extensions, repeated } = indexByOid(tbsCertificate.extensions ?? []);
  return {
    der,
    trailing: bytes.length - der.length,
    tbs,
    issuer,
    subject,
    subjectText: formatName(tbsCertificate.subject),
    notBefore: parseTime(notBefore),
    notAfter: parseTime(notAfter),
    curve: findCurve(subjectPublicKeyInfo.algorithm),
    publicKey: new Uint8Array(subjectPublicKeyInfo.subjectPublicKey),
    signatureAlgorithm: certificate.signatureAlgorithm.algorithm,
    algorithmsAgree: certificate.signatureAlgorithm.isEqual(signature),
    signature: new Uint8Array(certificate.signatureValue),
    basicConstraints: readBasicConstraints(extensions.get(id_ce_basicConstraints)),
    keyUsage: readKeyUsage(extensions.get(id_ce_keyUsage)),
    otherCritical: [...extensions.values()]
      .filter(
        ({ critical, extnID }) => critical && extnID !== id_ce_basicConstraints && extnID !== id_ce_keyUsage,
      )
      .map(({ extnID }) => extnID),
    repeated,
  };
}

const CONSTRUCTED = 0x20;
/** Maximum depth of nesting, which no real certificate reaches. It bounds the recursion on hostile bytes. */
const MAX_DEPTH = 32;

/**
 * Returns the end of the DER element at `start`. Checks that it and every element within it has a one-byte
 * tag and a definite and minimal length, and that constructed elements are filled exactly (X.690 sections
 * 10.1 and 8.1.3).
 */
function derEnd(bytes: Uint8Array, start: number, limit: number, depth: number): number {
  const tag = byteAt(bytes, start, limit);
  if ((tag & 0x1f) === 0x1f) throw new DerError('it has a tag of more than one byte');
  const first = byteAt(bytes, start + 1, limit);
  let content = start + 2;
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 2) throw new DerError('it has an indefinite or oversized length');
    length = 0;
    for (let i = 0; i < count; i++) length = (length << 8) | byteAt(bytes, content + i, limit);
    if (length < (count === 1 ? 0x80 : 0x100))
      throw new DerError('it has a length in more bytes than necessary');
    content += count;
  }
  const end = content + length;
  if (end > limit) throw new DerError('an element is longer than its container');
  if ((tag & CONSTRUCTED) !== 0) {
    if (depth >= MAX_DEPTH) throw new DerError('it nests too deeply');
    let next = content;
    while (next < end) next = derEnd(bytes, next, end, depth + 1);
  }
  return end;
}

/** Returns the direct children of a constructed element that `derEnd` has checked. */
function splitElements(der: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  const first = byteAt(der, 1, der.length);
  let next = first < 0x80 ? 2 : 2 + (first & 0x7f);
  while (next < der.length) {
    const end = derEnd(der, next, der.length, 0);
    elements.push(der.subarray(next, end));
    next = end;
  }
  return elements;
}

function byteAt(bytes: Uint8Array, index: number, limit: number): number {
  const byte = index < limit ? bytes[index] : undefined;
  if (byte === undefined) throw new DerError('it ends in the middle of an element');
  return byte;
}

function indexByOid(all: readonly Extension[]): { extensions: Map<string, Extension>; repeated: string[] } {
  const extensions = new Map<string, Extension>();
  const repeated: string[] = [];
  for (const extension of all) {
    if (extensions.has(extension.extnID)) repeated.push(extension.extnID);
    else extensions.set(extension.extnID, extension);
  }
  return { extensions, repeated };
}

function readBasicConstraints(extension: Extension | undefined): ParsedCertificate['basicConstraints'] {
  if (extension === undefined) return null;
  const { cA, pathLenConstraint } = AsnConvert.parse(readExactValue(extension), BasicConstraints);
  return { critical: extension.critical, ca: cA, pathLength: pathLenConstraint ?? null };
}

function readKeyUsage(extension: Extension | undefined): ParsedCertificate['keyUsage'] {
  if (extension === undefined) return null;
  const flags = AsnConvert.parse(readExactValue(extension), KeyUsage).toNumber();
  return {
    digitalSignature: (flags & KeyUsageFlags.digitalSignature) !== 0,
    keyCertSign: (flags & KeyUsageFlags.keyCertSign) !== 0,
  };
}

/** Returns the extension's value, which must be exactly one DER element. */
function readExactValue(extension: Extension): ArrayBuffer {
  const { buffer } = extension.extnValue;
  const value = new Uint8Array(buffer);
  if (derEnd(value, 0, value.length, 0) !== value.length) {
    throw new DerError(`bytes follow the value of its extension ${extension.extnID}`);
  }
  return buffer;
}

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

/**
 * Parses a time. Accepts only the two forms of RFC 5280 section 4.1.2.5, whereas the library turns any string
 * into some date.
 */
function parseTime(element: Uint8Array | undefined): Date {
  const [tag, , ...content] = element ?? [];
  const text = String.fromCharCode(...content);
  const digits = /^(\d{12}|\d{14})Z$/.exec(text)?.[1] ?? '';
  const full = digits.length === 12 ? `${digits < '50' ? '20' : '19'}${digits}` : digits;
  const [, ...parts] = /^(....)(..)(..)(..)(..)(..)$/.exec(full) ?? [];
  const [year, month, day, hour, minute, second] = parts;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const date = new Date(iso);
  const expected = digits.length === 12 ? UTC_TIME : GENERALIZED_TIME;
  // Compare the date with the text: Date turns days such as the 30th of February into others.
  if (tag !== expected || Number.isNaN(date.getTime()) || date.toISOString() !== iso) {
    throw new DerError('its validity is not in UTC with whole seconds');
  }
  return date;
}

function findCurve({ algorithm, parameters }: AlgorithmIdentifier): Curve | null {
  if (algorithm !== ID_EC_PUBLIC_KEY || !parameters) return null;
  return CURVES.get(bytesToHex(new Uint8Array(parameters))) ?? null;
}

function formatName(name: Name): string {
  return name
    .flatMap((relative) => [...relative])
    .map(({ type, value }) => `${ATTRIBUTE_NAMES[type] ?? type}=${value.toString()}`)
    .join(', ');
}
