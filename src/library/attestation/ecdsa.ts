/**
 * ECDSA verification (FIPS 186-5 section 6.4) by Web Crypto, or by `@noble/curves` where a page has no
 * `crypto.subtle` because it was loaded over plain http.
 *
 * Neither path requires low-s signatures, since AWS's signatures may have a high s.
 */
import { p256, p384 } from '@noble/curves/nist.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';
import { sha256, sha384 } from '@noble/hashes/sha2.js';

export type Curve = 'P-256' | 'P-384';
export type Hash = 'SHA-256' | 'SHA-384';

const NOBLE_CURVES = { 'P-256': p256, 'P-384': p384 } as const;
const NOBLE_HASHES = { 'SHA-256': sha256, 'SHA-384': sha384 } as const;

/** A signature, with the message and the key for which it is verified. */
export interface EcdsaSignature {
  readonly curve: Curve;
  readonly hash: Hash;
  /** The uncompressed point, 0x04 ‖ x ‖ y (SEC 1 section 2.3.3). */
  readonly publicKey: Uint8Array;
  /** r ‖ s, each as long as the curve's order, big-endian. */
  readonly signature: Uint8Array;
  readonly message: Uint8Array;
}

/** Returns whether the signature is valid; false if the point is not on the curve, or r or s out of range. */
export async function verifyEcdsa(signed: EcdsaSignature): Promise<boolean> {
  // Undefined on pages without a secure context, although the DOM types don't say so.
  const subtle: SubtleCrypto | undefined = globalThis.crypto?.subtle;
  return subtle === undefined ? verifyByNoble(signed) : verifyBySubtle(subtle, signed);
}

async function verifyBySubtle(subtle: SubtleCrypto, signed: EcdsaSignature): Promise<boolean> {
  let key: CryptoKey;
  try {
    key = await subtle.importKey(
      'raw',
      copyBytes(signed.publicKey),
      { name: 'ECDSA', namedCurve: signed.curve },
      false,
      ['verify'],
    );
  } catch {
    return false;
  }
  return await subtle.verify(
    { name: 'ECDSA', hash: signed.hash },
    key,
    copyBytes(signed.signature),
    copyBytes(signed.message),
  );
}

function verifyByNoble({ curve, hash, publicKey, signature, message }: EcdsaSignature): boolean {
  try {
    return NOBLE_CURVES[curve].verify(signature, NOBLE_HASHES[hash](message), publicKey, {
      prehash: false,
      lowS: false,
      format: 'compact',
    });
  } catch {
    return false;
  }
}

/** Copies the bytes, since Web Crypto's types refuse a view of a shared buffer. */
function copyBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** Reads r ‖ s from a DER Ecdsa-Sig-Value (RFC 3279 section 2.2.3); null if malformed or out of range. */
export function signatureFromDer(curve: Curve, der: Uint8Array): Uint8Array | null {
  try {
    return NOBLE_CURVES[curve].Signature.fromBytes(der, 'der').toBytes('compact');
  } catch {
    return null;
  }
}

/** Returns the half of a raw P-384 signature that is outside the range 1 to n - 1, or null if none is. */
export function findPartOutOfRange(signature: Uint8Array): 'r' | 's' | null {
  const inRange = (part: Uint8Array) => {
    const value = bytesToNumberBE(part);
    return value > 0n && value < p384.Point.Fn.ORDER;
  };
  if (!inRange(signature.subarray(0, 48))) return 'r';
  return inRange(signature.subarray(48)) ? null : 's';
}
