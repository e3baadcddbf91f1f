/** The ways in which a document's certificates can fail: see `errors.ts`. */
import { AttestationError } from './errors.ts';

/** An error about one certificate of the chain; `position` 0 is the root, the last one is the leaf. */
export abstract class CertificateError extends AttestationError {
  readonly position: number;

  constructor(position: number, what: string, options?: ErrorOptions) {
    super(`certificate ${position} of the chain ${what}`, options);
    this.position = position;
  }
}

/** Not an X.509 version 3 certificate in DER. */
export class MalformedCertificateError extends CertificateError {
  readonly code = 'CERTIFICATE_MALFORMED';

  constructor(position: number, what: string, options?: ErrorOptions) {
    super(position, `is not an X.509 v3 certificate in DER: ${what}`, options);
  }
}

/** The first certificate of the bundle is not one of the pinned roots. */
export class UntrustedRootError extends AttestationError {
  readonly code = 'CHAIN_ROOT';

  constructor(foundSha256: string, pinnedSha256: readonly string[]) {
    super(
      `the chain starts with the certificate ${foundSha256} (SHA-256), which is not a pinned root: ${pinnedSha256.join(', ')}. An emulated enclave (make dev ATTEST=emulated) has a root of its own, which proves nothing: only in development, name it by "roots", or --root`,
    );
  }
}

/** The issuer named is not the subject of the certificate before. */
export class IssuerMismatchError extends CertificateError {
  readonly code = 'CHAIN_ISSUER';

  constructor(position: number) {
    super(position, `names an issuer that is not the subject of certificate ${position - 1}`);
  }
}

/** The key of the certificate before did not sign this one. */
export class CertificateSignatureError extends CertificateError {
  readonly code = 'CHAIN_SIGNATURE';

  constructor(position: number) {
    super(position, `is not signed by the key of certificate ${position - 1}`);
  }
}

/** After its notAfter. */
export class CertificateExpiredError extends CertificateError {
  readonly code = 'CERTIFICATE_EXPIRED';

  constructor(position: number, notAfter: Date, at: Date) {
    super(position, `expired at ${notAfter.toISOString()}, and it is ${at.toISOString()}`);
  }
}

/** Before its notBefore. */
export class CertificateNotYetValidError extends CertificateError {
  readonly code = 'CERTIFICATE_NOT_YET_VALID';

  constructor(position: number, notBefore: Date, at: Date) {
    super(position, `is valid from ${notBefore.toISOString()}, and it is ${at.toISOString()}`);
  }
}

/** A certificate that signs others is not marked as an authority. */
export class NotAuthorityError extends CertificateError {
  readonly code = 'CERTIFICATE_NOT_AUTHORITY';

  constructor(position: number) {
    super(position, 'signs another, but has no critical basicConstraints with CA set');
  }
}

/** The leaf is marked as an authority. */
export class LeafIsAuthorityError extends CertificateError {
  readonly code = 'CERTIFICATE_LEAF_IS_AUTHORITY';

  constructor(position: number) {
    super(position, 'signs the document, but is marked as an authority');
  }
}

/** More authorities follow than pathLenConstraint allows. */
export class PathLengthError extends CertificateError {
  readonly code = 'CERTIFICATE_PATH_LENGTH';

  constructor(position: number, allowed: number, found: number) {
    super(position, `allows ${allowed} authorities after it (pathLenConstraint), but ${found} follow`);
  }
}

/** keyUsage is missing or does not allow what the key does. */
export class KeyUsageError extends CertificateError {
  readonly code = 'CERTIFICATE_KEY_USAGE';

  constructor(position: number, needed: string) {
    super(position, `has no keyUsage with ${needed}`);
  }
}

/** Not a P-384 key. */
export class CertificateKeyError extends CertificateError {
  readonly code = 'CERTIFICATE_KEY';

  constructor(position: number) {
    super(position, 'does not hold an uncompressed P-384 public key');
  }
}

/** Not signed by ECDSA with SHA-384. */
export class CertificateAlgorithmError extends CertificateError {
  readonly code = 'CERTIFICATE_ALGORITHM';

  constructor(position: number) {
    super(position, 'is not signed by ECDSA with SHA-384, named alike inside and outside its signed part');
  }
}

/** A critical extension whose meaning is not checked here. */
export class CriticalExtensionError extends CertificateError {
  readonly code = 'CERTIFICATE_CRITICAL_EXTENSION';

  constructor(position: number, oid: string) {
    super(position, `has the critical extension ${oid}, which is not understood here`);
  }
}
