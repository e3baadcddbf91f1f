/** Why a request can't be proved. No message holds a token, a claim's value, a salt or a proof. */
import { CodedError } from '../errors.ts';

/** Every code of a ProverError, the HTTP status that a proving service answers it with, and what it means. */
export const PROVER_ERRORS = {
  PROVER_REQUEST: { status: 400, meaning: 'a member of the request is missing, unknown or invalid' },
  PROVER_TOKEN: { status: 400, meaning: 'not a JWT that the circuit can read' },
  PROVER_MALFORMED_PROOF: {
    status: 400,
    meaning: 'a proof or a verifying key has invalid points, or is of another form',
  },
  PROVER_TOKEN_REFUSED: {
    status: 401,
    meaning: "the token's algorithm, key, signature or time is wrong",
  },
  PROVER_KEY: { status: 422, meaning: "the issuer's key is not one of RSA-2048 with e = 65537" },
  PROVER_CLAIM: {
    status: 422,
    meaning: 'a claim is missing, duplicated, escaped or invalid: see ClaimError',
  },
  PROVER_PROFILE: { status: 422, meaning: 'the token, or a claim, is larger than the circuit takes' },
  PROVER_NONCE: {
    status: 422,
    meaning: 'the token was made for another ephemeral key, maxEpoch or randomness',
  },
  PROVER_WITNESS: {
    status: 500,
    meaning: 'the witness generator refused the input, or it could not be run',
  },
  PROVER_ENGINE: { status: 500, meaning: 'the engine made no proof, or a wrong one' },
} as const;

export type ProverCode = keyof typeof PROVER_ERRORS;

export class ProverError extends CodedError<ProverCode> {}

/** A claim is missing, or is in a form that the circuit can't take. */
export class ClaimError extends ProverError {
  /** The name of the claim. */
  readonly claim: string;

  /** @param fault what follows the name of the claim in the message */
  constructor(claim: string, fault: string) {
    super('PROVER_CLAIM', `the token's "${claim}" ${fault}`);
    this.claim = claim;
  }
}
