/** What can go wrong on the parent instance. No message holds a secret. */
import { EnclaveError } from '../../src/errors.ts';

/** A program that the command needs is missing or failed. */
export class ProgramFailed extends EnclaveError {
  readonly code = 'PROGRAM_FAILED';
}

/** nitro-cli refused; the message explains its code. */
export class NitroFailed extends EnclaveError {
  readonly code = 'NITRO_FAILED';
}

/** There is no such enclave, or one runs already. */
export class WrongState extends EnclaveError {
  readonly code = 'WRONG_STATE';
}

/** The secrets are not those that the application names, or the enclave did not accept them. */
export class SecretsRefused extends EnclaveError {
  readonly code = 'SECRETS_REFUSED';
}
