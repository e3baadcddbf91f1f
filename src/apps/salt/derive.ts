/**
 * Derives salts from a seed, as README.md in this folder specifies. If the derivation changed, every user
 * would lose their address.
 */
import { hkdfSync } from 'node:crypto';
import { normalizeIssuer } from 'sui-enclave/token/issuer';

const SALT_BYTES = 16;

/**
 * Derives a salt by HKDF (RFC 5869) with SHA3-256: ikm = the seed, salt = issuer ‖ client id, info = subject,
 * all in UTF-8. The 16 bytes are a big-endian integer.
 *
 * @param seed 32 bytes
 * @param issuer the token's `iss`; both spellings of Google's issuer give the same salt, since a user has the
 *   same address with both
 * @returns the salt in decimal, below 2^128
 */
export function deriveSalt(seed: Uint8Array, issuer: string, clientId: string, subject: string): string {
  const bytes = hkdfSync('sha3-256', seed, normalizeIssuer(issuer) + clientId, subject, SALT_BYTES);
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`).toString();
}
