/** Checks the algorithm, key, signature and time of a token before a proof is made for it. */
import { OidcError, TokenClaimError } from '../oidc/errors.ts';
import { keyOfId, readKeySet } from '../oidc/jwk.ts';
import { readToken, verifySignature } from '../oidc/verify.ts';
import { KeyClaimError, ProverError } from './errors.ts';
import type { SigningKey } from './input.ts';

/**
 * Verifies a token with its issuer's keys. The caller decides which issuers and clients it accepts.
 *
 * @param keySet JWK Set (RFC 7517)
 * @returns the key that signed the token
 * @throws ProverError
 */
export async function verifyToken(jwt: string, keySet: unknown, at: Date): Promise<SigningKey> {
  try {
    const token = readToken(jwt);
    const key = keyOfId(await readKeySet(keySet), token.kid);
    await verifySignature(jwt, token, key, () => at);
    return key.jwk;
  } catch (error) {
    throw proverErrorOf(error);
  }
}

function proverErrorOf(error: unknown): unknown {
  // The claims about time are not inputs of the circuit.
  if (error instanceof TokenClaimError && !['exp', 'nbf', 'iat'].includes(error.claim)) {
    return new KeyClaimError(error.claim, error.fault);
  }
  if (!(error instanceof OidcError)) return error;
  const code = error.code === 'TOKEN_MALFORMED' ? 'PROVER_TOKEN' : 'PROVER_TOKEN_REFUSED';
  return new ProverError(code, error.message);
}
