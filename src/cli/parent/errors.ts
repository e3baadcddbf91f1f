/** Errors of commands on the parent instance: one `code` for each cause. No message contains a secret. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a ParentError, and what it means. */
export const PARENT_CODES = {
  PROGRAM_FAILED: 'A program that the command needs is missing or failed.',
  NITRO_FAILED: 'nitro-cli refused. The message explains its code.',
  WRONG_STATE:
    'The enclave does not run, already runs, or runs another image or in another mode than needed.',
  ENCLAVE_ENDED:
    'The enclave that run_enclave --foreground watched has ended. The message repeats its last report.',
  SECRETS_REFUSED:
    'The secrets differ from those that the application names, or the enclave did not accept them.',
} as const;

export type ParentCode = keyof typeof PARENT_CODES;

/** Every error that the parent's commands throw on purpose. */
export class ParentError extends CodedError<ParentCode> {}
