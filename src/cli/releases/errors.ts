/** The errors of `sui-enclave release`, besides those of `sui-enclave/release`. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a ReleaseCommandError, and what it means. */
export const RELEASE_COMMAND_CODES = {
  SIGNER_FILE: 'The file of the signer is not of the known form.',
  RELEASE_KEY: 'The file of the key is not a private Ed25519 key in PEM that only its owner can read.',
  NOT_RELEASABLE:
    'The build is not a stable one of an unchanged commit, or its files do not belong together.',
  SEEN_FILE: 'The file of the head that was seen last is not one that the command wrote.',
  NOT_REPRODUCED: 'Another build of the same commit has other bytes.',
  NOT_IN_WORKFLOW: 'A signature without a key needs a run of a workflow of GitHub.',
  SIGSTORE: 'Sigstore did not sign.',
  LOGGED: 'The log has this version already, or does not have the one to withdraw.',
} as const;

export class ReleaseCommandError extends CodedError<keyof typeof RELEASE_COMMAND_CODES> {}
