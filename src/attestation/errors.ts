/**
 * Every way in which a document can fail to be trusted: one class for each cause, each with a stable
 * `code`. `README.md` beside this file lists which numbered rule throws which; those of the certificates
 * are in `certificate_errors.ts`.
 */
import { EnclaveError } from '../errors.ts';

/** The base of everything that this library throws about a document or a policy. */
export abstract class AttestationError extends EnclaveError {}

// The envelope: COSE_Sign1 in CBOR.

/** The bytes are not CBOR. */
export class MalformedCborError extends AttestationError {
  readonly code = 'CBOR_MALFORMED';

  constructor(what: string, options?: ErrorOptions) {
    super(`the attestation document is not well-formed CBOR: ${what}`, options);
  }
}

/** An item outside the payload has an indefinite length. */
export class IndefiniteLengthError extends AttestationError {
  readonly code = 'CBOR_INDEFINITE_LENGTH';

  constructor() {
    super('outside its payload, an attestation document must have definite lengths only');
  }
}

/** A map has a key twice. */
export class DuplicateKeyError extends AttestationError {
  readonly code = 'CBOR_DUPLICATE_KEY';

  constructor(map: string, key: string | number | bigint) {
    super(`${map} has the key ${JSON.stringify(String(key))} more than once`);
  }
}

/** Bytes follow the document. */
export class TrailingBytesError extends AttestationError {
  readonly code = 'CBOR_TRAILING_BYTES';

  constructor(where: string, count: number) {
    super(`${count} bytes follow the end of ${where}`);
  }
}

/** The input is not bytes, is empty, or is larger than any document. */
export class DocumentSizeError extends AttestationError {
  readonly code = 'DOCUMENT_SIZE';
}

/** Not an array of four of the right types. */
export class NotCoseSign1Error extends AttestationError {
  readonly code = 'COSE_SHAPE';

  constructor(what: string) {
    super(
      `not a COSE_Sign1, which is [protected bytes, unprotected map, payload bytes, signature bytes]: ${what}`,
    );
  }
}

/** A tag other than 18 (COSE_Sign1), or tag 18 twice. */
export class CoseTagError extends AttestationError {
  readonly code = 'COSE_TAG';

  constructor() {
    super('an attestation document is tagged 18 (COSE_Sign1) or not at all');
  }
}

/** The protected header is not `{1: -35}` (ES384). */
export class ProtectedHeaderError extends AttestationError {
  readonly code = 'COSE_PROTECTED_HEADER';

  constructor(foundHex: string) {
    super(
      `the protected header is ${foundHex}, but must be a1013822 (ES384): the document is not signed by an NSM`,
    );
  }
}

/** The unprotected header, which no signature covers, is not empty. */
export class UnprotectedHeaderError extends AttestationError {
  readonly code = 'COSE_UNPROTECTED_HEADER';

  constructor() {
    super('the unprotected header must be an empty map');
  }
}

/** The payload has no byte, or over 16383. */
export class PayloadSizeError extends AttestationError {
  readonly code = 'COSE_PAYLOAD_SIZE';

  constructor(size: number, limit: number) {
    super(`the payload has ${size} bytes, but must have 1 to ${limit}`);
  }
}

/** The signature has not 96 bytes. */
export class SignatureSizeError extends AttestationError {
  readonly code = 'COSE_SIGNATURE_SIZE';

  constructor(size: number) {
    super(`the signature has ${size} bytes, but an ES384 signature has 96`);
  }
}

/** r or s of the document's signature is 0 or not below the curve's order. */
export class SignatureRangeError extends AttestationError {
  readonly code = 'COSE_SIGNATURE_RANGE';

  constructor(part: 'r' | 's') {
    super(`the ${part} of the signature is not in the range 1 to n - 1 of P-384`);
  }
}

/** The document is not what the key of its certificate signed. */
export class SignatureMismatchError extends AttestationError {
  readonly code = 'COSE_SIGNATURE_MISMATCH';

  constructor() {
    super('the signature does not match the payload and the certificate: the document was changed');
  }
}

// The payload.

/** A field is missing or not of its type. */
export class FieldError extends AttestationError {
  readonly code = 'DOCUMENT_FIELD';
  readonly field: string;

  constructor(field: string, expected: string) {
    super(`the field "${field}" must be ${expected}`);
    this.field = field;
  }
}

/** A field has too few or too many bytes or entries. */
export class FieldSizeError extends AttestationError {
  readonly code = 'DOCUMENT_FIELD_SIZE';
  readonly field: string;

  constructor(field: string, size: number, expected: string) {
    super(`the field "${field}" has ${size}, but must have ${expected}`);
    this.field = field;
  }
}

/** The digest is not SHA384. */
export class DigestError extends AttestationError {
  readonly code = 'DOCUMENT_DIGEST';

  constructor() {
    super('the field "digest" must be "SHA384"');
  }
}

/** A register's index is not 0 to 31. */
export class RegisterIndexError extends AttestationError {
  readonly code = 'REGISTER_INDEX';

  constructor() {
    super('a register has an index that is not a whole number from 0 to 31');
  }
}

/** A register's value has not 32, 48 or 64 bytes. */
export class RegisterSizeError extends AttestationError {
  readonly code = 'REGISTER_SIZE';

  constructor(index: number) {
    super(`register ${index} is not a value of 32, 48 or 64 bytes`);
  }
}

// The policy.

/** The policy itself can't be used. Nothing was verified. */
export class InvalidPolicyError extends AttestationError {
  readonly code = 'POLICY_INVALID';
}

/** The time to judge by is none. Nothing was verified. */
export class InvalidTimeError extends AttestationError {
  readonly code = 'TIME_INVALID';

  constructor() {
    super('"now" must be a Date or a number of milliseconds since 1970');
  }
}

/** An accepted image has a register of zeros: as a policy, that would accept every debug enclave. */
export class ZeroImageError extends AttestationError {
  readonly code = 'POLICY_ZERO_IMAGE';

  constructor(register: string) {
    super(`${register} of an accepted image is zero: that is what debug enclaves measure, whatever they run`);
  }
}

/** Registers 0 to 2 are zero: a debug enclave, whose memory its parent can read. */
export class DebugEnclaveError extends AttestationError {
  readonly code = 'POLICY_DEBUG';

  constructor() {
    super(
      'registers 0 to 2 are all zero: the enclave runs in debug mode, and its parent can read its memory. Set allowDebug in the policy to accept that',
    );
  }
}

/** The registers are those of no accepted image. */
export class PcrMismatchError extends AttestationError {
  readonly code = 'POLICY_PCRS';
  /** What the document says of registers 0 to 2, in hexadecimal; null for a register that it leaves out. */
  readonly found: readonly (string | null)[];

  /** @param diff one line for each register of each accepted image */
  constructor(found: readonly (string | null)[], diff: string) {
    super(`the enclave runs none of the accepted images:\n${diff}`);
    this.found = found;
  }
}

/** The document binds another public key, or none. */
export class PublicKeyMismatchError extends AttestationError {
  readonly code = 'POLICY_PUBLIC_KEY';

  constructor() {
    super('the public_key of the document is not the expected one');
  }
}

/** The document answers another nonce, or none. */
export class NonceMismatchError extends AttestationError {
  readonly code = 'POLICY_NONCE';

  constructor() {
    super('the nonce of the document is not the expected one: it was made for another request');
  }
}

/** The document holds other user data, or none. */
export class UserDataMismatchError extends AttestationError {
  readonly code = 'POLICY_USER_DATA';

  constructor() {
    super('the user_data of the document is not the expected one');
  }
}

/** Made longer ago than the policy allows. */
export class DocumentTooOldError extends AttestationError {
  readonly code = 'POLICY_TOO_OLD';

  constructor(ageMs: number, limitMs: number) {
    super(`the document is ${ageMs} ms old, but may be ${limitMs} ms old at most`);
  }
}

/** Made further in the future than the policy's maximum age allows for a clock that is off. */
export class DocumentFromFutureError extends AttestationError {
  readonly code = 'POLICY_FROM_FUTURE';

  constructor(aheadMs: number, limitMs: number) {
    super(
      `the document is dated ${aheadMs} ms ahead of the given time, but may be ${limitMs} ms ahead at most`,
    );
  }
}
