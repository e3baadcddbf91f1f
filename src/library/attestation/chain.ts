/**
 * The certificate chain of a document, from a pinned root to the leaf (RFC 5280 section 6, as far as AWS
 * Nitro's chains need it). Each rule is applied to the whole chain before the next one.
 */

import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { quantity } from '../wording.ts';
import { malformedCertificate, type ParsedCertificate, parseCertificate } from './certificate.ts';
import { signatureFromDer, verifyEcdsa } from './ecdsa.ts';
import { AttestationError, CertificateError } from './errors.ts';
import type { Passed, RuleId } from './rules.ts';

/** ecdsa-with-SHA384 (RFC 5758 section 3.2). */
const ECDSA_WITH_SHA384 = '1.2.840.10045.4.3.3';
/** An uncompressed P-384 point: 0x04 and two coordinates of 48 bytes. */
const POINT_SIZE = 97;
const UNCOMPRESSED = 0x04;

/** A parsed chain: root first, leaf last. */
export type Chain = readonly [root: ParsedCertificate, ...issued: ParsedCertificate[]];

/**
 * Reads the chain, which starts with a pinned root.
 *
 * @param certificates DER, root first, leaf last: at least one
 * @param roots DER of the pinned roots
 * @throws AttestationError
 */
export function parseChain(
  certificates: readonly Uint8Array[],
  roots: readonly Uint8Array[],
  passed: Passed,
): Chain {
  const [first, ...issued] = certificates;
  // Compare bytes, not names or keys: anyone can give a certificate the name of the root.
  if (first === undefined || !roots.some((root) => equalBytes(root, first))) {
    throw untrustedRoot(first, roots);
  }
  passed('chain.root', certificateFingerprint(first));

  const chain: Chain = [parse(first, 0), ...issued.map((der, index) => parse(der, index + 1))];
  passed('certificate.der', quantity(chain.length, 'certificate'));
  return chain;
}

/**
 * Checks everything about a parsed chain except its signatures.
 *
 * @param now milliseconds since 1970
 * @throws CertificateError
 */
export function checkChain(chain: Chain, now: number, passed: Passed): void {
  passed('certificate.validity', checkValidity(chain, now));
  for (const [rule, check] of CHECKS) {
    check({ chain, authorities: chain.slice(0, -1), leaf: chain.at(-1) as ParsedCertificate });
    passed(rule);
  }
}

interface Parts {
  readonly chain: Chain;
  /** Every certificate but the leaf. */
  readonly authorities: readonly ParsedCertificate[];
  readonly leaf: ParsedCertificate;
}

/** The checks that return no detail for the report, in the order of the rules. */
const CHECKS: readonly (readonly [RuleId, (parts: Parts) => void])[] = [
  ['chain.issuer', checkIssuers],
  ['certificate.authority', checkAuthorities],
  ['certificate.leaf', checkLeaf],
  ['certificate.path_length', checkPathLengths],
  ['certificate.key_usage', checkKeyUsages],
  ['certificate.key', checkKeys],
  ['certificate.algorithm', checkAlgorithms],
  ['certificate.extensions', checkExtensions],
];

/**
 * Checks that every certificate is valid at `now`.
 *
 * @returns the time until which they are valid, as text for the report
 */
function checkValidity(chain: Chain, now: number): string {
  // Certificates give times in whole seconds, and their validity includes both ends.
  const second = Math.floor(now / 1000) * 1000;
  const time = new Date(now).toISOString();
  for (const [position, { notBefore, notAfter }] of chain.entries()) {
    if (second > notAfter.getTime()) {
      const message = `expired at ${notAfter.toISOString()}, and it is ${time}`;
      throw new CertificateError('CERTIFICATE_EXPIRED', position, message);
    }
    if (second < notBefore.getTime()) {
      const message = `is valid from ${notBefore.toISOString()}, and it is ${time}`;
      throw new CertificateError('CERTIFICATE_NOT_YET_VALID', position, message);
    }
  }
  return `until ${validUntil(chain).toISOString()}`;
}

function checkIssuers({ chain }: Parts): void {
  for (const [parent, child, position] of listLinks(chain)) {
    if (!equalBytes(child.issuer, parent.subject)) {
      const message = `names an issuer that is not the subject of certificate ${position - 1}`;
      throw new CertificateError('CHAIN_ISSUER', position, message);
    }
  }
}

function checkAuthorities({ authorities }: Parts): void {
  for (const [position, { basicConstraints }] of authorities.entries()) {
    if (!basicConstraints?.critical || !basicConstraints.ca) {
      const message = 'signs another certificate, but has no critical basicConstraints with CA set';
      throw new CertificateError('CERTIFICATE_NOT_AUTHORITY', position, message);
    }
  }
}

function checkLeaf({ authorities, leaf }: Parts): void {
  if (leaf.basicConstraints && (leaf.basicConstraints.ca || leaf.basicConstraints.pathLength !== null)) {
    const message = 'signs the document, but is marked as an authority';
    throw new CertificateError('CERTIFICATE_LEAF_IS_AUTHORITY', authorities.length, message);
  }
}

function checkPathLengths({ authorities }: Parts): void {
  // Self-issued certificates also count towards the path length: AWS has none between its root and a leaf.
  for (const [position, { basicConstraints }] of authorities.entries()) {
    const allowed = basicConstraints?.pathLength ?? Number.POSITIVE_INFINITY;
    const followers = authorities.length - 1 - position;
    if (followers > allowed) {
      const message = `has a pathLenConstraint of ${allowed}, below the number of authorities that follow it: ${followers}`;
      throw new CertificateError('CERTIFICATE_PATH_LENGTH', position, message);
    }
  }
}

function checkKeyUsages({ authorities, leaf }: Parts): void {
  for (const [position, { keyUsage }] of authorities.entries()) {
    if (!keyUsage?.keyCertSign) throw keyUsageError(position, 'keyCertSign');
  }
  if (!leaf.keyUsage?.digitalSignature) throw keyUsageError(authorities.length, 'digitalSignature');
}

function checkKeys({ chain }: Parts): void {
  for (const [position, { curve, publicKey }] of chain.entries()) {
    if (curve !== 'P-384' || publicKey.length !== POINT_SIZE || publicKey[0] !== UNCOMPRESSED) {
      const message = 'does not hold an uncompressed P-384 public key';
      throw new CertificateError('CERTIFICATE_KEY', position, message);
    }
  }
}

function checkAlgorithms({ chain }: Parts): void {
  for (const [position, { signatureAlgorithm, algorithmsAgree }] of chain.entries()) {
    if (signatureAlgorithm !== ECDSA_WITH_SHA384 || !algorithmsAgree) {
      const message =
        'does not name ECDSA with SHA-384 as its signature algorithm, both inside and outside its signed part';
      throw new CertificateError('CERTIFICATE_ALGORITHM', position, message);
    }
  }
}

function checkExtensions({ chain }: Parts): void {
  for (const [position, { otherCritical }] of chain.entries()) {
    const [oid] = otherCritical;
    if (oid !== undefined) {
      const message = `has the unknown critical extension ${oid}`;
      throw new CertificateError('CERTIFICATE_CRITICAL_EXTENSION', position, message);
    }
  }
}

/** Returns the earliest notAfter: the last second at which every certificate is valid. */
export function validUntil(chain: Chain): Date {
  return new Date(Math.min(...chain.map(({ notAfter }) => notAfter.getTime())));
}

/** Checks that the key of each certificate signed the next one. @throws CertificateError */
export async function checkChainSignatures(chain: Chain, passed: Passed): Promise<void> {
  // The links are verified in parallel: Web Crypto uses more than one thread. The root needs no check: its
  // bytes are pinned.
  const verdicts = await Promise.all(
    listLinks(chain).map(async ([parent, child]) => {
      const signature = signatureFromDer('P-384', child.signature);
      return (
        signature !== null &&
        (await verifyEcdsa({
          curve: 'P-384',
          hash: 'SHA-384',
          publicKey: parent.publicKey,
          signature,
          message: child.tbs,
        }))
      );
    }),
  );

  const brokenLink = verdicts.indexOf(false);
  if (brokenLink !== -1) {
    const message = `is not signed by the key of certificate ${brokenLink}`;
    throw new CertificateError('CHAIN_SIGNATURE', brokenLink + 1, message);
  }
  passed('chain.signature', quantity(verdicts.length, 'signature'));
}

function untrustedRoot(first: Uint8Array | undefined, roots: readonly Uint8Array[]): AttestationError {
  const fingerprint = first ? certificateFingerprint(first) : 'none';
  const pinned = roots.map(certificateFingerprint).join(', ');
  return new AttestationError(
    'CHAIN_ROOT',
    `the chain starts with the certificate ${fingerprint} (SHA-256), which is not a pinned root: ${pinned}. An emulated enclave (ATTEST=emulated sui-enclave dev) uses a development root, which proves nothing: to accept it, in development only, pass that root as "roots" or --root`,
  );
}

function keyUsageError(position: number, usage: string): CertificateError {
  return new CertificateError('CERTIFICATE_KEY_USAGE', position, `has no keyUsage with ${usage}`);
}

/** SHA-256 of a certificate's DER, in hexadecimal, for people to compare. */
export function certificateFingerprint(der: Uint8Array): string {
  return bytesToHex(sha256(der));
}

function parse(der: Uint8Array, position: number): ParsedCertificate {
  const certificate = parseCertificate(der, position);
  if (certificate.trailing > 0) {
    throw malformedCertificate(position, `it is followed by ${quantity(certificate.trailing, 'byte')}`);
  }
  if (certificate.repeated.length > 0)
    throw malformedCertificate(position, 'it has the same extension twice');
  return certificate;
}

type Link = readonly [parent: ParsedCertificate, child: ParsedCertificate, childPosition: number];

function listLinks(chain: Chain): Link[] {
  return chain.slice(1).map((child, index) => [chain[index] as ParsedCertificate, child, index + 1] as const);
}
