/** The errors that the front end answers with: those of the prover, with their statuses. */
import { errorClass } from 'sui-enclave-service/errors';
import { PROVER_ERRORS, ProverError } from '../errors.ts';
import { toProverError } from '../token.ts';

export class FrontendError extends errorClass(PROVER_ERRORS) {}

/** The error to answer with for one of the prover or of the verification of tokens; any other unchanged. */
export function toAnswer(error: unknown): unknown {
  const proverError = toProverError(error);
  if (!(proverError instanceof ProverError)) return proverError;
  const { code, message, cause } = proverError;
  return new FrontendError(code, message, cause === undefined ? {} : { cause });
}
