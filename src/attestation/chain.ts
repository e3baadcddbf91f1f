/**
 * The certificate chain of a document, from a pinned root to the leaf (RFC 5280 section 6, as far as AWS
 * Nitro's chains need it). The numbers are those of the rules in `README.md`; each rule is applied to the
 * whole chain before the next one.
 */
import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { type ParsedCertificate, parseCertificate } from './certificate.ts';
import {
  CertificateAlgorithmError,
  CertificateExpiredError,
  CertificateKeyError,
  CertificateNotYetValidError,
  CertificateSignatureError,
  CriticalExtensionError,
  IssuerMismatchError,
  KeyUsageError,
  LeafIsAuthorityError,
  MalformedCertificateError,
  NotAuthorityError,
  PathLengthError,
  UntrustedRootError,
} from './certificate_errors.ts';
import { signatureFromDer, verifyEcdsa } from './ecdsa.ts';

/** ecdsa-with-SHA384 (RFC 5758 section 3.2). */
const ECDSA_WITH_SHA384 = '1.2.840.10045.4.3.3';
/** An uncompressed P-384 point: 0x04 and two coordinates of 48 bytes. */
const POINT_SIZE = 97;
const UNCOMPRESSED = 0x04;

/** A parsed chain: root first, leaf last. */
export type Chain = readonly [root: ParsedCertificate, ...others: ParsedCertificate[]];

/**
 * Checks every rule of the chain but its signatures (rules 22 to 32).
 *
 * @param certificates DER, root first, leaf last: at least one
 * @param roots DER of the pinned roots
 * @param now milliseconds since 1970
 */
export function checkChain(
  certificates: readonly Uint8Array[],
  roots: readonly Uint8Array[],
  now: number,
): Chain {
  const [first, ...others] = certificates;
  // [22] Bytes, not names or keys: whoever can name himself like the root must not be taken for it.
  if (first === undefined || !roots.some((root) => equalBytes(root, first))) {
    throw new UntrustedRootError(first ? fingerprint(first) : 'none', roots.map(fingerprint));
  }
  // [23]
  const chain: Chain = [parse(first, 0), ...others.map((der, index) => parse(der, index + 1))];
  const leafPosition = chain.length - 1;
  const authorities = chain.slice(0, leafPosition);
  // [24] Certificates tell time in whole seconds, and both ends belong to their validity.
  const second = Math.floor(now / 1000) * 1000;
  for (const [position, { notBefore, notAfter }] of chain.entries()) {
    if (second > notAfter.getTime()) throw new CertificateExpiredError(position, notAfter, new Date(now));
    if (second < notBefore.getTime()) {
      throw new CertificateNotYetValidError(position, notBefore, new Date(now));
    }
  }
  // [25]
  for (const [parent, child, position] of links(chain)) {
    if (!equalBytes(child.issuer, parent.subject)) throw new IssuerMismatchError(position);
  }
  // [26]
  for (const [position, { basicConstraints }] of authorities.entries()) {
    if (!basicConstraints?.critical || !basicConstraints.ca) throw new NotAuthorityError(position);
  }
  const leaf = chain[leafPosition] as ParsedCertificate;
  // [27]
  if (leaf.basicConstraints && (leaf.basicConstraints.ca || leaf.basicConstraints.pathLength !== null)) {
    throw new LeafIsAuthorityError(leafPosition);
  }
  // [28] Self-issued certificates count as well: AWS has none between its root and a leaf.
  for (const [position, { basicConstraints }] of authorities.entries()) {
    const allowed = basicConstraints?.pathLength ?? Number.POSITIVE_INFINITY;
    const found = authorities.length - 1 - position;
    if (found > allowed) throw new PathLengthError(position, allowed, found);
  }
  // [29]
  for (const [position, { keyUsage }] of authorities.entries()) {
    if (!keyUsage?.keyCertSign) throw new KeyUsageError(position, 'keyCertSign');
  }
  if (!leaf.keyUsage?.digitalSignature) throw new KeyUsageError(leafPosition, 'digitalSignature');
  // [30]
  for (const [position, { curve, publicKey }] of chain.entries()) {
    if (curve !== 'P-384' || publicKey.length !== POINT_SIZE || publicKey[0] !== UNCOMPRESSED) {
      throw new CertificateKeyError(position);
    }
  }
  // [31]
  for (const [position, { signatureAlgorithm, algorithmsAgree }] of chain.entries()) {
    if (signatureAlgorithm !== ECDSA_WITH_SHA384 || !algorithmsAgree) {
      throw new CertificateAlgorithmError(position);
    }
  }
  // [32]
  for (const [position, { otherCritical }] of chain.entries()) {
    const [oid] = otherCritical;
    if (oid !== undefined) throw new CriticalExtensionError(position, oid);
  }
  return chain;
}

/** Checks that each certificate was signed by the key of the one before (rule 33). */
export async function checkChainSignatures(chain: Chain): Promise<void> {
  // Side by side: Web Crypto uses more than one thread. The root is not asked: its bytes are pinned.
  const verdicts = await Promise.all(
    links(chain).map(async ([parent, child]) => {
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
  // [33]
  const failed = verdicts.indexOf(false);
  if (failed !== -1) throw new CertificateSignatureError(failed + 1);
}

/** SHA-256 of a certificate's DER, in hexadecimal: what people compare. */
export function fingerprint(der: Uint8Array): string {
  return bytesToHex(sha256(der));
}

function parse(der: Uint8Array, position: number): ParsedCertificate {
  const certificate = parseCertificate(der, position);
  if (certificate.trailing > 0) {
    throw new MalformedCertificateError(position, `${certificate.trailing} bytes follow it`);
  }
  return certificate;
}

type Link = readonly [parent: ParsedCertificate, child: ParsedCertificate, childPosition: number];

function links(chain: Chain): Link[] {
  return chain.slice(1).map((child, index) => [chain[index] as ParsedCertificate, child, index + 1] as const);
}
