/** Why a request can't be proved. No message holds a token, a claim's value, a salt or a proof. */
import { InvalidInput, Unacceptable, Unauthenticated } from '../errors.ts';

/** A member of the request is missing or not what it must be; the message names it. */
export class ProofRequestError extends InvalidInput {
  override readonly code = 'PROVER_REQUEST';
}

/** The token is no JWT that the circuit could read. */
export class ProofTokenError extends InvalidInput {
  override readonly code = 'PROVER_TOKEN';
}

/** The token's signature, key or time is wrong: it is nobody's login now. */
export class TokenRefusedError extends Unauthenticated {
  readonly code = 'PROVER_TOKEN_REFUSED';
}

/** The issuer's key is not one of RSA-2048 with e = 65537. */
export class ProofKeyError extends Unacceptable {
  readonly code = 'PROVER_KEY';
}

/** A claim is missing, or stands in the token in a way that the circuit can't take. */
export class ProofClaimError extends Unacceptable {
  readonly code = 'PROVER_CLAIM';
  readonly claim: string;

  constructor(claim: string, fault: string) {
    super(`the token's "${claim}" ${fault}`);
    this.claim = claim;
  }
}

/** The token is larger than the profile takes. */
export class ProofProfileError extends Unacceptable {
  readonly code = 'PROVER_PROFILE';
}

/** The token was made for another ephemeral key, maxEpoch or randomness. */
export class ProofNonceError extends Unacceptable {
  readonly code = 'PROVER_NONCE';
}

/** A proof or a verifying key is not in snarkjs' form, or has points that are none. */
export class MalformedProofError extends InvalidInput {
  override readonly code = 'PROVER_MALFORMED_PROOF';
}
