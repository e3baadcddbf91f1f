/** Checks a token's algorithm, key, signature and time before a proof is made for it. */
import { type OidcCode, OidcError, TokenClaimError } from 'sui-enclave-service/oidc/errors';
import { keyOfId, readKeySet } from 'sui-enclave-service/oidc/jwk';
import { readToken, verifySignature } from 'sui-enclave-service/oidc/verify';
import { KeyClaimError, type ProverCode, ProverError } from './errors.ts';
import type { SigningKey } from './input.ts';

/**
 * Verifies a token with its issuer's keys. The caller decides which issuers and clients it accepts.
 *
 * @param keySet JWK Set (RFC 7517)
 * @param time time at which the token must be valid
 * @returns the key that signed the token
 * @throws ProverError
 */
export async function verifyToken(jwt: string, keySet: unknown, time: Date): Promise<SigningKey> {
  try {
    const token = readToken(jwt);
    const key = keyOfId(await readKeySet(keySet), token.kid);
    await verifySignature(jwt, token, key, () => time);
    return key.jwk;
  } catch (error) {
    // The keys come from the caller's file, so a malformed set is not the fault of an issuer.
    if (error instanceof OidcError && error.code === 'ISSUER_MALFORMED') {
      throw new ProverError(
        'PROVER_TOKEN_REFUSED',
        'the keys are not a JWK Set ({"keys": […]}) of valid keys',
      );
    }
    throw toProverError(error);
  }
}

const CODES = {
  TOKEN_MALFORMED: 'PROVER_TOKEN',
  TOKEN_ALGORITHM: 'PROVER_TOKEN_REFUSED',
  TOKEN_TYPE: 'PROVER_TOKEN_REFUSED',
  TOKEN_KEY_UNKNOWN: 'PROVER_TOKEN_REFUSED',
  TOKEN_SIGNATURE: 'PROVER_TOKEN_REFUSED',
  TOKEN_EXPIRED: 'PROVER_TOKEN_REFUSED',
  TOKEN_NOT_YET_VALID: 'PROVER_TOKEN_REFUSED',
  TOKEN_CLAIM: 'PROVER_TOKEN_REFUSED',
  ISSUER_NOT_ALLOWED: 'PROVER_ISSUER_NOT_ALLOWED',
  CLIENT_NOT_ALLOWED: 'PROVER_CLIENT_NOT_ALLOWED',
  PRESENTER_NOT_ALLOWED: 'PROVER_CLIENT_NOT_ALLOWED',
  ISSUER_UNREACHABLE: 'PROVER_ISSUER',
  ISSUER_REFUSED: 'PROVER_ISSUER',
  ISSUER_MALFORMED: 'PROVER_ISSUER',
  ISSUER_TIMEOUT: 'PROVER_ISSUER_TIMEOUT',
} as const satisfies Record<OidcCode, ProverCode>;

/** Converts an error of the verification into a ProverError. Returns any other error unchanged. */
export function toProverError(error: unknown): unknown {
  // Claims about time are not inputs of the circuit.
  if (error instanceof TokenClaimError && !['exp', 'nbf', 'iat'].includes(error.claim)) {
    return new KeyClaimError(error.claim, error.fault);
  }
  if (!(error instanceof OidcError)) return error;
  const { code, message, cause } = error;
  return new ProverError(CODES[code], message, cause === undefined ? {} : { cause });
}
