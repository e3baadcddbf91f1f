/** Errors that the front end answers with: the prover's errors with their statuses. */
import { errorClass } from 'sui-enclave-service/errors';
import { PROVER_ERRORS, ProverError } from '../errors.ts';
import { toProverError } from '../token.ts';

export class FrontendError extends errorClass(PROVER_ERRORS) {}

/**
 * Converts an error of the prover, or of the verification of tokens, into a FrontendError, which has a
 * status. Returns any other error unchanged.
 */
export function toFrontendError(error: unknown): unknown {
  const proverError = toProverError(error);
  if (!(proverError instanceof ProverError)) return proverError;
  const { code, message, cause } = proverError;
  return new FrontendError(code, message, cause === undefined ? {} : { cause });
}
