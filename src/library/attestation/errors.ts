/** Reasons to distrust a document: one stable `code` for each cause. `rules.ts` maps rules to codes. */
import { CodedError } from '../errors.ts';

/** Every code of an AttestationError, and what it means. */
export const ATTESTATION_CODES = {
  // The envelope: COSE_Sign1 in CBOR.
  DOCUMENT_SIZE: 'The document is not a Uint8Array, is empty, or has more than 32768 bytes.',
  CBOR_MALFORMED: 'The bytes are not well-formed CBOR.',
  CBOR_INDEFINITE_LENGTH: 'An item outside the payload has an indefinite length.',
  CBOR_DUPLICATE_KEY: 'A map has the same key twice.',
  CBOR_TRAILING_BYTES: 'Bytes follow the document or its payload.',
  COSE_TAG: 'The document has a tag other than 18 (COSE_Sign1), or has tag 18 twice.',
  COSE_SHAPE: 'The document is not an array of four items of the right types.',
  COSE_PROTECTED_HEADER: 'The protected header is not {1: -35} (ES384).',
  COSE_UNPROTECTED_HEADER: 'The unprotected header, which no signature covers, is not empty.',
  COSE_PAYLOAD_SIZE: 'The payload is empty or larger than 16383 bytes.',
  COSE_SIGNATURE_SIZE: 'The signature is not 96 bytes long.',
  COSE_SIGNATURE_RANGE: 'r or s of the signature is zero, or not below the order of the curve.',
  COSE_SIGNATURE_MISMATCH: "The key of the leaf certificate didn't sign the document.",
  // The payload.
  DOCUMENT_FIELD: 'A field is missing or has the wrong type: see FieldError.',
  DOCUMENT_FIELD_SIZE: 'A field has too few or too many bytes or entries: see FieldError.',
  DOCUMENT_DIGEST: 'The digest is not SHA384.',
  REGISTER_INDEX: 'The index of a register is not an integer from 0 to 31.',
  REGISTER_SIZE: 'The value of a register is not 32, 48 or 64 bytes long.',
  // The certificates. All but CHAIN_ROOT are CertificateErrors.
  CHAIN_ROOT: 'The first certificate of the bundle is not a pinned root.',
  CHAIN_ISSUER: 'The issuer of a certificate is not the subject of the previous certificate.',
  CHAIN_SIGNATURE: 'A certificate is not signed by the key of the previous certificate.',
  CERTIFICATE_MALFORMED: 'A certificate is not X.509 version 3 in DER.',
  CERTIFICATE_EXPIRED: 'A certificate has expired.',
  CERTIFICATE_NOT_YET_VALID: 'A certificate is not valid yet.',
  CERTIFICATE_NOT_AUTHORITY: 'A certificate signs another one, but is not marked as an authority.',
  CERTIFICATE_LEAF_IS_AUTHORITY: 'The leaf certificate is marked as an authority.',
  CERTIFICATE_PATH_LENGTH: 'More authorities follow a certificate than its pathLenConstraint allows.',
  CERTIFICATE_KEY_USAGE: "A certificate's keyUsage is missing or doesn't allow what its key does.",
  CERTIFICATE_KEY: 'The key of a certificate is not an uncompressed P-384 point.',
  CERTIFICATE_ALGORITHM: 'A certificate is not signed by ECDSA with SHA-384.',
  CERTIFICATE_CRITICAL_EXTENSION: 'A certificate has an unknown critical extension.',
  // The options. Nothing was verified.
  POLICY_INVALID: 'The policy or another option is invalid.',
  POLICY_ZERO_IMAGE: 'A register of an accepted image is zero, which would accept every debug enclave.',
  TIME_INVALID: '`now` is not a valid time.',
  // The policy.
  POLICY_DEBUG: 'The enclave runs in debug mode: its parent can read its memory.',
  POLICY_PCRS: 'The enclave runs none of the accepted images: see PcrMismatchError.',
  POLICY_PUBLIC_KEY: 'The document binds another public key, or none.',
  POLICY_NONCE: 'The document answers another nonce, or none.',
  POLICY_USER_DATA: 'The document holds other user data, or none.',
  POLICY_TOO_OLD: 'The document is older than the policy allows.',
  POLICY_FROM_FUTURE: 'The document is dated further ahead of `now` than the policy allows.',
  // Thrown by readUserData, after the document was verified.
  USER_DATA_MISSING: 'The document holds no user data: the enclave has no key to seal to.',
  USER_DATA_FORMAT: 'The user data is not the structure UserData in BCS, or one of its values is invalid.',
} as const;

/** Stable code of an AttestationError: a key of ATTESTATION_CODES. */
export type AttestationCode = keyof typeof ATTESTATION_CODES;

/** Everything that this library throws about a document or a policy. */
export class AttestationError extends CodedError<AttestationCode> {}

/** An error about a field of the payload. */
export class FieldError extends AttestationError {
  /** Name of the field of the document, such as `pcrs`. */
  readonly field: string;

  /** @param problem follows the name of the field in the message */
  constructor(code: 'DOCUMENT_FIELD' | 'DOCUMENT_FIELD_SIZE', field: string, problem: string) {
    super(code, `the field "${field}" ${problem}`);
    this.field = field;
  }
}

/** An error about one certificate of the chain. */
export class CertificateError extends AttestationError {
  /** Position in the chain: 0 is the root, the last one is the leaf. */
  readonly position: number;

  /** @param problem follows the number of the certificate in the message */
  constructor(code: CertificateCode, position: number, problem: string, options?: ErrorOptions) {
    super(code, `certificate ${position} of the chain ${problem}`, options);
    this.position = position;
  }
}

/** Codes of a CertificateError. */
export type CertificateCode = Exclude<
  Extract<AttestationCode, `CERTIFICATE_${string}` | `CHAIN_${string}`>,
  'CHAIN_ROOT'
>;

/** The registers match no accepted image. */
export class PcrMismatchError extends AttestationError {
  /** Registers 0 to 2 of the document in hexadecimal; null for a register that it lacks. */
  readonly found: readonly (string | null)[];

  /** @param diff one line for each register of each accepted image */
  constructor(registers: readonly (string | null)[], diff: string) {
    super('POLICY_PCRS', `the enclave runs none of the accepted images:\n${diff}`);
    this.found = registers;
  }
}
