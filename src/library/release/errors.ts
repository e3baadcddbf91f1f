/** Reasons to distrust a release: one stable `code` for each cause. */
import { CodedError } from '../errors.ts';

/** Every code of a ReleaseError, and what it means. */
export const RELEASE_CODES = {
  RELEASE_OPTION: 'An option is invalid. Nothing was verified.',
  RELEASE_UNSUPPORTED:
    'A keyless release needs Node and the packages @sigstore/bundle, @sigstore/protobuf-specs and @sigstore/verify. In a browser, verify a release that is signed by a key.',
  RELEASE_TOO_LARGE: 'A file or a statement is larger than its limit.',
  RELEASE_JSON: 'A file is not JSON, or has the same name twice in an object.',
  RELEASE_FORM: 'A file, a statement or an envelope has an unknown form.',
  RELEASE_SIGNATURE: 'A statement is not signed by the key, or by the key of the certificate.',
  RELEASE_CERTIFICATE:
    'The certificate is not issued under the trusted root, was not valid at the time of signing, or is not in Certificate Transparency.',
  RELEASE_INCLUSION: 'The transparency log does not have exactly this signature and statement.',
  RELEASE_IDENTITY: 'A statement is signed by another identity: see ReleaseIdentityError.',
  RELEASE_COMMIT: 'The statements and the certificate do not name the same commit and tag.',
  RELEASE_SUBJECTS:
    'The statements are about different files, do not list a required file, or name registers that differ from nitro.pcrs.',
  RELEASE_LOG: 'The log is not one chain of entries, or its head does not name its last entry.',
  RELEASE_NOT_LOGGED: 'The log has no entry for exactly this release.',
  RELEASE_CONFLICT: 'The log has two releases of one version with different files.',
  RELEASE_WITHDRAWN: 'The log withdraws the release.',
  RELEASE_HEAD_EXPIRED: 'The head of the log has expired: get a fresh head.',
  RELEASE_HEAD_ROLLED_BACK: 'The log lacks the entry that was seen before.',
} as const;

/** Stable code of a ReleaseError: a key of RELEASE_CODES. */
export type ReleaseCode = keyof typeof RELEASE_CODES;

/** Error that `verifyRelease` throws; its `code` names the failed check. */
export class ReleaseError extends CodedError<ReleaseCode> {}

export function invalidReleaseOption(message: string): ReleaseError {
  return new ReleaseError('RELEASE_OPTION', message);
}

/** A statement is signed by an identity other than the expected one. */
export class ReleaseIdentityError extends ReleaseError {
  /** The property of the identity that differs. */
  readonly property: string;

  constructor(property: string, expected: string, received: string | undefined) {
    const claim =
      received === undefined ? `no ${property}` : `${JSON.stringify(received.slice(0, 200))} as ${property}`;
    super('RELEASE_IDENTITY', `the certificate has ${claim}; expected ${JSON.stringify(expected)}`);
    this.property = property;
  }
}
