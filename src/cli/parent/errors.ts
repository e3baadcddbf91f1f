/** Errors of commands on the parent instance: one `code` for each cause. No message contains a secret. */
import { CodedError } from 'sui-enclave/errors';

/** Every code of a ParentError, and what it means. */
export const PARENT_CODES = {
  PROGRAM_FAILED: 'A program that the command needs is missing or failed.',
  NITRO_FAILED: 'nitro-cli refused. The message explains its code.',
  WRONG_STATE:
    'The enclave is not running, is already running, has the wrong image, or is in the wrong mode.',
  ENCLAVE_ENDED:
    'The enclave that run_enclave --foreground watched has ended. The message repeats its last report.',
  SECRETS_REFUSED:
    'The secrets differ from those that the application names, or the enclave did not accept them.',
  RELEASE_MISSING: 'The bucket does not have a file that the hosts of the stack fetch.',
  STACK_STATE:
    'The CloudFormation stack has another template, is being changed, or does not accept the change.',
  STACK_FAILED: 'CloudFormation could not make or apply the change. The message has its reasons.',
  KEYS_END: 'The change would end enclaves, whose keys are then lost.',
} as const;

export type ParentCode = keyof typeof PARENT_CODES;

/** An error that a command on the parent instance throws on purpose. */
export class ParentError extends CodedError<ParentCode> {}
