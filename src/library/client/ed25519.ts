import { ed25519 } from '@noble/curves/ed25519.js';

/**
 * Returns whether an Ed25519 signature (RFC 8032 section 5.1.7) is valid. Uses Web Crypto, or `@noble/curves`
 * where the browser has no Ed25519 or, on plain http, no `crypto.subtle`.
 *
 * @param publicKey 32 bytes
 * @param signature 64 bytes
 */
export async function verifyEd25519(
  publicKey: Uint8Array,
  signature: Uint8Array,
  message: Uint8Array,
): Promise<boolean> {
  const subtle: SubtleCrypto | undefined = globalThis.crypto?.subtle;
  const key = subtle && (await importKey(subtle, publicKey));
  if (key) {
    return await subtle.verify('Ed25519', key, new Uint8Array(signature), new Uint8Array(message));
  }
  try {
    // The looser rules of ZIP 215, noble's default, are off: Web Crypto doesn't follow them either.
    return ed25519.verify(signature, message, publicKey, { zip215: false });
  } catch {
    return false;
  }
}

/**
 * Returns the key, or null when Web Crypto refuses it: the algorithm is unknown, or the bytes are not a
 * point.
 */
async function importKey(subtle: SubtleCrypto, publicKey: Uint8Array): Promise<CryptoKey | null> {
  try {
    return await subtle.importKey('raw', new Uint8Array(publicKey), 'Ed25519', false, ['verify']);
  } catch {
    return null;
  }
}
