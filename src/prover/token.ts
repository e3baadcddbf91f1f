/** Checks the algorithm, key, signature and time of a token before a proof is made for it. */
import { decodeProtectedHeader, errors, importJWK, type JWK, jwtVerify } from 'jose';
import * as v from 'valibot';
import { ProverError } from './errors.ts';
import type { SigningKey } from './input.ts';

/** Maximum difference between an issuer's clock and ours. */
const MAX_SKEW_SECONDS = 60;

const refused = (message: string) => new ProverError('PROVER_TOKEN_REFUSED', message);

const KeySet = v.object({ keys: v.array(v.looseObject({})) });

/**
 * Verifies a token with its issuer's keys. The caller decides which issuers and clients it accepts.
 *
 * @param keySet JWK Set (RFC 7517)
 * @returns the key that signed the token
 * @throws ProverError
 */
export async function verifyToken(jwt: string, keySet: unknown, at: Date): Promise<SigningKey> {
  const key = keyFor(headerOf(jwt), keySet);
  try {
    const { payload } = await jwtVerify(jwt, await importJWK(key, 'RS256'), {
      algorithms: ['RS256'],
      requiredClaims: ['exp', 'iat'],
      clockTolerance: MAX_SKEW_SECONDS,
      currentDate: at,
    });
    if (!(Number(payload.iat) <= at.getTime() / 1000 + MAX_SKEW_SECONDS)) {
      throw refused('the token was issued in the future (iat)');
    }
    return key;
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

function headerOf(jwt: string): { kid: string } {
  let header: { alg?: unknown; kid?: unknown; typ?: unknown };
  try {
    header = decodeProtectedHeader(jwt);
  } catch {
    throw new ProverError(
      'PROVER_TOKEN',
      'the token is not a JWT: it must be three parts of base64url, separated by dots',
    );
  }
  const { alg, kid, typ } = header;
  if (alg !== 'RS256') throw refused('the token must be signed with RS256');
  // Issuers also sign tokens other than ID tokens (RFC 8725, section 3.11).
  if (typ !== undefined && !(typeof typ === 'string' && /^jwt$/i.test(typ))) {
    throw refused('the token is not an ID token: its "typ" must be JWT, or absent');
  }
  if (typeof kid !== 'string') throw refused('the token does not name its key (kid)');
  return { kid };
}

function keyFor({ kid }: { kid: string }, keySet: unknown): JWK {
  if (!v.is(KeySet, keySet)) throw refused('the keys are not a JWK Set: {"keys": […]}');
  const keys = keySet.keys.filter((key) => key['kid'] === kid && key['kty'] === 'RSA');
  const [key] = keys;
  if (!key || keys.length > 1) {
    throw refused('the key that the token names (kid) is not among the keys, or occurs twice');
  }
  if ((key['alg'] ?? 'RS256') !== 'RS256' || (key['use'] ?? 'sig') !== 'sig') {
    throw refused('the key that the token names is not for RS256 signatures');
  }
  return key as JWK;
}

/** Translates jose's errors. Their messages are not passed on, since they may quote the token. */
function refusalOf(error: unknown): ProverError | undefined {
  if (error instanceof errors.JWTExpired) return refused('the token has expired (exp)');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return refused(
      error.reason === 'check_failed'
        ? `the token is not valid yet (${error.claim})`
        : `the token's "${error.claim}" is missing or not a number`,
    );
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return refused("the token's signature is invalid");
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError) {
    return new ProverError('PROVER_TOKEN', 'the token or its key is malformed');
  }
  return undefined;
}
