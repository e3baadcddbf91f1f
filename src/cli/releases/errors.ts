/** The errors of `sui-enclave release`, besides those of `sui-enclave/release`. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a ReleaseCommandError, and what it means. */
export const RELEASE_COMMAND_CODES = {
  SIGNER_FILE: 'The file of the signer does not have the expected form.',
  RELEASE_KEY: 'The file of the key is not a private Ed25519 key in PEM that only its owner can read.',
  NOT_RELEASABLE:
    'The build is not a stable build of an unchanged commit, or its files do not belong together.',
  SEEN_FILE: 'The file with the head that was seen last was not written by this command.',
  NOT_REPRODUCED: 'Another build of the same commit has other bytes.',
  NOT_IN_WORKFLOW: 'Without a key, only a run of a GitHub workflow can sign.',
  SIGSTORE: 'Sigstore did not sign.',
  LOGGED: 'The log has this version already, or lacks the release to withdraw or any entry to renew.',
} as const;

export class ReleaseCommandError extends CodedError<keyof typeof RELEASE_COMMAND_CODES> {}
