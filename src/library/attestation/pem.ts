/** Certificates in text form: PEM (RFC 7468) and plain base64. */
import { AttestationError } from './errors.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/**
 * Returns the DER of every certificate in a PEM string, in order, for the `roots` of `verifyAttestation`.
 *
 * @throws AttestationError: POLICY_INVALID when there is no certificate, or one is not base64
 */
export function certificatesFromPem(text: string): Uint8Array[] {
  const bodies = [...text.matchAll(CERTIFICATE)].map(([, body]) => body ?? '');
  if (bodies.length === 0) throw new AttestationError('POLICY_INVALID', 'the PEM file holds no certificate');
  return bodies.map((body) => {
    try {
      return fromBase64(body);
    } catch (cause) {
      throw new AttestationError('POLICY_INVALID', 'a certificate in the PEM file is not base64', { cause });
    }
  });
}

/** Decodes base64, and ignores white space. @throws DOMException when the string is not base64 */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
