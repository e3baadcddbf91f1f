/** Certificates as texts: PEM (RFC 7468) and bare base64. */

import { InvalidPolicyError } from './errors.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/**
 * DER of every certificate in a PEM text, in its order: for the `roots` of `verifyAttestation`.
 *
 * @throws InvalidPolicyError when there is none, or one is not base64
 */
export function certificatesFromPem(text: string): Uint8Array[] {
  const bodies = [...text.matchAll(CERTIFICATE)].map(([, body]) => body ?? '');
  if (bodies.length === 0) throw new InvalidPolicyError('the PEM text holds no certificate');
  return bodies.map((body) => {
    try {
      return fromBase64(body);
    } catch (cause) {
      throw new InvalidPolicyError('a certificate of the PEM text is not base64', { cause });
    }
  });
}

/** @throws DOMException when the text is not base64 (white space is skipped) */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
