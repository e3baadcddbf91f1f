import { encode } from 'cborg';

/**
 * The protected header of every attestation document: {1: -35}, which names the algorithm ES384 (RFC 9053
 * section 2.1).
 */
export const PROTECTED_HEADER: Uint8Array = Uint8Array.of(0xa1, 0x01, 0x38, 0x22);

/**
 * Returns the bytes that a COSE_Sign1 signs: its Sig_structure without external data (RFC 9052 section 4.4).
 */
export function signedBytes(protectedHeader: Uint8Array, payload: Uint8Array): Uint8Array {
  return encode(['Signature1', protectedHeader, new Uint8Array(), payload]);
}
