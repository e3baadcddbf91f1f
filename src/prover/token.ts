/** What a proof does not show of a token, and its front end must check: algorithm, key, signature and time. */
import { decodeProtectedHeader, errors, importJWK, type JWK, jwtVerify } from 'jose';
import * as v from 'valibot';
import { ProverError } from './errors.ts';
import type { SigningKey } from './input.ts';

/** How far an issuer's clock may be from ours. */
const MAX_SKEW_SECONDS = 60;

const refused = (message: string) => new ProverError('PROVER_TOKEN_REFUSED', message);

const KeySet = v.object({ keys: v.array(v.looseObject({})) });

/**
 * Checks a token by its issuer's keys. Which issuers and clients are taken is for the caller to say.
 *
 * @param keySet JWK Set (RFC 7517)
 * @returns the key that signed it
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
      'the token is no JWT: three parts of base64url with dots between them',
    );
  }
  const { alg, kid, typ } = header;
  if (alg !== 'RS256') throw refused('the token must be signed with RS256');
  // RFC 8725, section 3.11: an issuer signs more than ID tokens.
  if (typ !== undefined && !(typeof typ === 'string' && /^jwt$/i.test(typ))) {
    throw refused('the token is no ID token: its "typ" must be JWT, or absent');
  }
  if (typeof kid !== 'string') throw refused('the token does not name its key (kid)');
  return { kid };
}

function keyFor({ kid }: { kid: string }, keySet: unknown): JWK {
  if (!v.is(KeySet, keySet)) throw refused('the keys are no JWK Set: {"keys": […]}');
  const keys = keySet.keys.filter((key) => key['kid'] === kid && key['kty'] === 'RSA');
  const [key] = keys;
  if (!key || keys.length > 1) {
    throw refused('the key that the token names (kid) is not among the keys, or there twice');
  }
  if ((key['alg'] ?? 'RS256') !== 'RS256' || (key['use'] ?? 'sig') !== 'sig') {
    throw refused('the key that the token names is not one for RS256 signatures');
  }
  return key as JWK;
}

/** The causes that jose tells apart; its messages are not passed on. */
function refusalOf(error: unknown): ProverError | undefined {
  if (error instanceof errors.JWTExpired) return refused('the token has expired (exp)');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return refused(
      error.reason === 'check_failed'
        ? `the token is not valid yet (${error.claim})`
        : `the token's "${error.claim}" is missing or no number`,
    );
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return refused("the token's signature is not its issuer's");
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError) {
    return new ProverError('PROVER_TOKEN', 'the token, or its key, is of no form that can be verified');
  }
  return undefined;
}
