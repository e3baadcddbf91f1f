/** The errors that the front end answers with: those of the prover, with their statuses. */
import { errorClass } from 'sui-enclave-service/errors';
import { PROVER_ERRORS, ProverError } from '../errors.ts';
import { proverErrorOf } from '../token.ts';

export class FrontendError extends errorClass(PROVER_ERRORS) {}

/** The error to answer with for one of the prover or of the verification of tokens; any other unchanged. */
export function answerOf(error: unknown): unknown {
  const known = proverErrorOf(error);
  if (!(known instanceof ProverError)) return known;
  const { code, message, cause } = known;
  return new FrontendError(code, message, cause === undefined ? {} : { cause });
}
