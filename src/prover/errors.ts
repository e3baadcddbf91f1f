/** Errors of the prover. No message contains a token, a claim's value, a salt or a proof. */
import { CodedError } from 'sui-enclave/errors';

/** Codes of a ProverError, each with its meaning, and with the HTTP status that a proving service answers. */
export const PROVER_ERRORS = {
  PROVER_REQUEST: { status: 400, meaning: 'a property of the request is missing, unknown or invalid' },
  PROVER_TOKEN: { status: 400, meaning: 'not a JWT that the circuit can read' },
  PROVER_MALFORMED_PROOF: {
    status: 400,
    meaning: 'a proof or a verifying key has invalid points or another format',
  },
  PROVER_TOKEN_REFUSED: {
    status: 401,
    meaning: "the token's algorithm, key, signature or time is invalid",
  },
  PROVER_ISSUER_NOT_ALLOWED: { status: 403, meaning: 'the service does not accept tokens of this issuer' },
  PROVER_CLIENT_NOT_ALLOWED: {
    status: 403,
    meaning: 'the client id (`aud`), or the party that the token was issued to (`azp`), is not in `CLIENTS`',
  },
  PROVER_KEY: { status: 422, meaning: "the issuer's key is not an RSA-2048 key with e = 65537" },
  PROVER_CLAIM: {
    status: 422,
    meaning: 'a claim is missing, duplicated, escaped or invalid; the message names it',
  },
  PROVER_PROFILE: { status: 422, meaning: 'the token, or a claim, is larger than the circuit accepts' },
  PROVER_NONCE: {
    status: 422,
    meaning: 'the token was issued for another ephemeral key, maxEpoch or randomness',
  },
  PROVER_RATE_LIMITED: { status: 429, meaning: 'too many requests of this user: see `Retry-After`' },
  PROVER_WITNESS: {
    status: 500,
    meaning: 'the witness generator refused the input or could not be run',
  },
  PROVER_ENGINE: { status: 500, meaning: 'the engine returned no proof or an invalid one' },
  PROVER_ISSUER: { status: 502, meaning: "the issuer's keys could not be fetched, or are malformed" },
  PROVER_BACKEND_UNREACHABLE: {
    status: 502,
    meaning: 'the front end could not connect to the backend, or the connection broke',
  },
  PROVER_BACKEND_ANSWER: {
    status: 502,
    meaning: 'the backend answered with an error, or without a valid proof for this request',
  },
  PROVER_BUSY: {
    status: 503,
    meaning:
      "the request would wait longer than `ANSWER_SECONDS`, or the backend's queue is full: see `Retry-After`",
  },
  PROVER_ENGINE_HUNG: {
    status: 503,
    meaning: "the backend's engine hung, and there was no time for a second try: see `Retry-After`",
  },
  PROVER_NOT_READY: {
    status: 503,
    meaning: '`/readyz`: the backend does not answer, or has not loaded its key',
  },
  PROVER_WRONG_NETWORK: {
    status: 503,
    meaning:
      'the key of the backend belongs to another network: the operator must change `ZKEY` or `VERIFYING_KEY`',
  },
  PROVER_ISSUER_TIMEOUT: { status: 504, meaning: 'the issuer did not send its keys within 5 s' },
  PROVER_BACKEND_TIMEOUT: {
    status: 504,
    meaning: 'the backend took longer than `PROVER_TIMEOUT`; the message contains the limit in seconds',
  },
} as const;

export type ProverCode = keyof typeof PROVER_ERRORS;

export class ProverError extends CodedError<ProverCode> {}

/** Error of a claim that is missing, or that has a form which the circuit can't process. */
export class KeyClaimError extends ProverError {
  /** Name of the claim. */
  readonly claim: string;

  /** @param fault part of the message that follows the claim's name */
  constructor(claim: string, fault: string) {
    super('PROVER_CLAIM', `the token's "${claim}" ${fault}`);
    this.claim = claim;
  }
}
