/** Verifies that an ID token is genuine, currently valid, and issued to an accepted client. */
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { isIssuedBy, normalizeIssuer } from 'sui-enclave/token/issuer';
import type { Client } from './clients.ts';
import { OidcError, TokenClaimError } from './errors.ts';
import type { KeyOfId, RsaKey } from './jwk.ts';
import type { IssuerKeys } from './keys.ts';

/** Tolerated difference between the issuer's clock and ours, in seconds. */
const MAX_SKEW_SECONDS = 60;

/** Unverified parts of a token: they only select the client and the key. */
export interface UnverifiedToken {
  readonly kid: string;
  readonly claims: UnverifiedClaims;
}

interface UnverifiedClaims {
  readonly iss: string;
  readonly aud: string;
  readonly azp: string | undefined;
  readonly tid: unknown;
}

/**
 * A client whose tokens are accepted. Without a client id, it matches every client of its issuer, with any
 * presenter.
 */
export type AcceptedClient = Pick<Client, 'issuer' | 'presenters'> & Partial<Pick<Client, 'clientId'>>;

export interface Verified<Accepted> {
  readonly client: Accepted;
  /**
   * The token's `iss`, with Microsoft's tenant. If the issuer has two spellings, it is always the same
   * spelling.
   */
  readonly issuer: string;
  /** The key that signed the token. */
  readonly key: RsaKey;
  readonly payload: JWTPayload;
}

export interface VerifierOptions {
  /** Runs the verification of a signature, and may limit how many run at once. */
  readonly limit?: <T>(work: () => Promise<T>) => Promise<T>;
  readonly now?: () => Date;
}

export class TokenVerifier<Accepted extends AcceptedClient> {
  readonly #clients: readonly Accepted[];
  readonly #findKeys: (client: Accepted) => IssuerKeys;
  readonly #limit: NonNullable<VerifierOptions['limit']>;
  readonly #now: () => Date;

  constructor(
    clients: readonly Accepted[],
    findKeys: (client: Accepted) => IssuerKeys,
    { limit = (work) => work(), now = () => new Date() }: VerifierOptions = {},
  ) {
    this.#clients = clients;
    this.#findKeys = findKeys;
    this.#limit = limit;
    this.#now = now;
  }

  /**
   * Verifies a token.
   *
   * @throws OidcError with any code; other errors of the upstream; the errors of `limit`
   */
  async verify(jwt: string): Promise<Verified<Accepted>> {
    const token = readToken(jwt);
    const client = this.#findClient(token.claims);
    requirePresenter(client, token.claims.azp);
    // The key is fetched only now, so that a token of an unknown client costs neither a request nor a
    // signature verification.
    const key = await this.#findKeys(client).findKey(token.kid);
    const payload = await verifySignature(jwt, token, key, this.#now, this.#limit);
    return { client, issuer: normalizeIssuer(token.claims.iss), key: key.jwk, payload };
  }

  #findClient(claims: UnverifiedClaims): Accepted {
    const clientsOfIssuer = this.#clients.filter(({ issuer }) => isIssuedBy(issuer, claims));
    if (clientsOfIssuer.length === 0)
      throw new OidcError('ISSUER_NOT_ALLOWED', 'tokens of this issuer are not accepted');
    const client = clientsOfIssuer.find(({ clientId }) => clientId === undefined || clientId === claims.aud);
    if (!client) throw new OidcError('CLIENT_NOT_ALLOWED', 'tokens of this client id (aud) are not accepted');
    return client;
  }
}

/**
 * Checks to whom the token was issued (OpenID Connect Core 1.0, section 2, "azp"). Anyone's service account
 * can obtain a token for any `aud`. Mobile apps also obtain tokens for the client id of their server;
 * `presenters` lists these apps.
 */
function requirePresenter({ clientId, presenters }: AcceptedClient, azp: string | undefined): void {
  if (clientId === undefined || azp === undefined || azp === clientId || presenters.includes(azp)) return;
  throw new OidcError(
    'PRESENTER_NOT_ALLOWED',
    'tokens that were issued to this presenter (azp) are not accepted',
  );
}

/**
 * Reads the parts of a token that select the key and the client.
 *
 * @throws OidcError: TOKEN_MALFORMED, TOKEN_ALGORITHM, TOKEN_TYPE, TOKEN_KEY_UNKNOWN, TOKEN_CLAIM
 */
export function readToken(jwt: string): UnverifiedToken {
  let header: { alg?: unknown; kid?: unknown; typ?: unknown };
  let claims: JWTPayload;
  try {
    header = decodeProtectedHeader(jwt);
    claims = decodeJwt(jwt);
  } catch {
    throw new OidcError(
      'TOKEN_MALFORMED',
      'the token is not a JWT: three parts of base64url, separated by dots',
    );
  }
  if (header.alg !== 'RS256') throw new OidcError('TOKEN_ALGORITHM', 'the token must be signed with RS256');
  // RFC 8725, section 3.11: an issuer also signs other tokens, such as access tokens (RFC 9068, at+jwt).
  if (header.typ !== undefined && !(typeof header.typ === 'string' && /^jwt$/i.test(header.typ))) {
    throw new OidcError('TOKEN_TYPE', 'the token is not an ID token: its "typ" must be JWT, or absent');
  }
  if (typeof header.kid !== 'string')
    throw new OidcError('TOKEN_KEY_UNKNOWN', 'the token does not name its key (kid)');
  const { iss, aud, azp, tid } = claims as Record<string, unknown>;
  if (typeof iss !== 'string') throw new TokenClaimError('iss', 'must be a string');
  if (typeof aud !== 'string') throw new TokenClaimError('aud', 'must be one string, not an array');
  if (azp !== undefined && typeof azp !== 'string') throw new TokenClaimError('azp', 'must be a string');
  return { kid: header.kid, claims: { iss, aud, azp, tid } };
}

/**
 * Verifies signature and times, and that the token has the claims of an ID token (OpenID Connect Core 1.0,
 * section 2).
 *
 * @param token what readToken returned for `jwt`
 * @throws OidcError: TOKEN_KEY_UNKNOWN if the key is for tokens of another issuer, TOKEN_MALFORMED,
 *   TOKEN_SIGNATURE, TOKEN_EXPIRED, TOKEN_NOT_YET_VALID, TOKEN_CLAIM
 */
export async function verifySignature(
  jwt: string,
  { claims }: UnverifiedToken,
  { imported, issuers }: KeyOfId,
  now: () => Date,
  limit: NonNullable<VerifierOptions['limit']> = (work) => work(),
): Promise<JWTPayload> {
  if (!issuers.every((issuer) => isKeyFor(issuer, claims))) {
    throw new OidcError('TOKEN_KEY_UNKNOWN', 'the key that the token names is for tokens of another issuer');
  }
  const payload = await limit(() =>
    jwtVerify(jwt, imported, {
      algorithms: ['RS256'],
      // Issuer and audience are not checked here, since the caller has compared them with the accepted
      // clients.
      requiredClaims: ['sub', 'exp', 'iat'],
      clockTolerance: MAX_SKEW_SECONDS,
      currentDate: now(),
    }).then(({ payload }) => payload, refuse),
  );
  if (!(Number(payload.iat) <= now().getTime() / 1000 + MAX_SKEW_SECONDS)) {
    throw new OidcError('TOKEN_NOT_YET_VALID', 'the token was issued in the future (iat)');
  }
  return payload;
}

/**
 * Returns whether a key may sign tokens with these claims.
 *
 * @param issuer the issuer of the key, in which `{tenantid}` matches any tenant
 */
function isKeyFor(issuer: string, claims: UnverifiedClaims): boolean {
  return isIssuedBy(
    issuer.replaceAll('{tenantid}', () => String(claims.tid)),
    claims,
  );
}

/**
 * Replaces an error of jose by an OidcError. Does not keep jose's error as the cause, since that contains
 * claims of the token.
 */
function refuse(error: unknown): never {
  throw toOidcError(error) ?? error;
}

function toOidcError(error: unknown): OidcError | undefined {
  if (error instanceof errors.JWTExpired)
    return new OidcError('TOKEN_EXPIRED', 'the token has expired (exp)');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return error.claim === 'nbf' && error.reason === 'check_failed'
      ? new OidcError('TOKEN_NOT_YET_VALID', 'the token is not valid yet (nbf)')
      : new TokenClaimError(error.claim, 'is missing or invalid');
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return new OidcError('TOKEN_SIGNATURE', "the token's signature is invalid");
  }
  if (error instanceof errors.JOSEError)
    return new OidcError('TOKEN_MALFORMED', 'the token is not a JWT that can be verified');
  return undefined;
}
