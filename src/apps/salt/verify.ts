/** Verifies that a token is genuine, currently valid, and issued to a client of SALT_CLIENTS. */
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { SUI_V1, valueFault } from '../../zklogin/claims.ts';
import { isIssuedBy } from '../../zklogin/issuer.ts';
import type { Client } from './clients.ts';
import { SaltError } from './errors.ts';
import type { IssuerKeys } from './keys.ts';
import type { Slots } from './limits.ts';

/** Tolerated difference between the issuer's clock and ours. */
const MAX_SKEW_SECONDS = 60;

export interface Verified {
  readonly client: Client;
  /** The token's `iss`: for Microsoft with the tenant. */
  readonly issuer: string;
  readonly subject: string;
}

export class TokenVerifier {
  readonly #clients: readonly Client[];
  readonly #keysOf: (client: Client) => IssuerKeys;
  readonly #slots: Slots;
  readonly #now: () => Date;

  constructor(
    clients: readonly Client[],
    keysOf: (client: Client) => IssuerKeys,
    slots: Slots,
    now: () => Date = () => new Date(),
  ) {
    this.#clients = clients;
    this.#keysOf = keysOf;
    this.#slots = slots;
    this.#now = now;
  }

  /** @throws SaltError with any code but SALT_RATE_LIMITED */
  async verify(token: string): Promise<Verified> {
    const { kid, claims } = decode(token);
    const client = this.#clientOf(claims);
    requirePresenter(client, claims.azp);
    // Only now, so that a token of an unknown client costs neither a request nor a signature verification.
    const { key, issuers } = await this.#keysOf(client).with(kid);
    if (!issuers.every((issuer) => isKeyFor(issuer, claims))) {
      throw new SaltError(
        'SALT_TOKEN_KEY_UNKNOWN',
        'the key that the token names is for tokens of another issuer',
      );
    }
    const payload = await this.#slots.run(() =>
      jwtVerify(token, key, {
        algorithms: ['RS256'],
        // Not the issuer: #clientOf has checked it, and here it would be compared with itself.
        audience: client.clientId,
        requiredClaims: ['sub', 'exp', 'iat'],
        clockTolerance: MAX_SKEW_SECONDS,
        currentDate: this.#now(),
      }).then(({ payload }) => payload, refuse),
    );
    return { client, issuer: claims.iss, subject: this.#subjectOf(payload) };
  }

  /** Uses unverified claims: they only select the key by which the token is verified. */
  #clientOf(claims: { iss: string; aud: string; tid: unknown }): Client {
    const ofIssuer = this.#clients.filter(({ issuer }) => isIssuedBy(issuer, claims));
    if (ofIssuer.length === 0)
      throw new SaltError('SALT_ISSUER_NOT_ALLOWED', 'tokens of this issuer are not accepted');
    const client = ofIssuer.find(({ clientId }) => clientId === claims.aud);
    if (!client)
      throw new SaltError('SALT_CLIENT_NOT_ALLOWED', 'tokens of this client id (aud) are not accepted');
    return client;
  }

  #subjectOf({ sub, iat = Number.NaN }: JWTPayload): string {
    if (!(iat <= this.#now().getTime() / 1000 + MAX_SKEW_SECONDS)) {
      throw new SaltError('SALT_TOKEN_NOT_YET_VALID', 'the token was issued in the future (iat)');
    }
    if (typeof sub !== 'string')
      throw new SaltError('SALT_TOKEN_CLAIM', 'the token\'s "sub" must be a string');
    const fault = valueFault(sub, SUI_V1.subject);
    if (fault !== null)
      throw new SaltError(
        'SALT_SUBJECT_UNUSABLE',
        `the token's "sub" ${fault}: no zkLogin proof can be made for it`,
      );
    return sub;
  }
}

/**
 * Checks to whom the token was issued (OpenID Connect Core 1.0, section 2, "azp"): anyone's service account can obtain
 * a token for any `aud`, whereas a mobile app legitimately obtains one for the client id of its server.
 */
function requirePresenter({ clientId, presenters }: Client, azp: string | undefined): void {
  if (azp === undefined || azp === clientId || presenters.includes(azp)) return;
  throw new SaltError(
    'SALT_PRESENTER_NOT_ALLOWED',
    'tokens that were issued to this presenter (azp) are not accepted',
  );
}

/** @param issuer the issuer of a key, in which `{tenantid}` matches any tenant */
function isKeyFor(issuer: string, claims: { iss: string; tid: unknown }): boolean {
  return isIssuedBy(
    issuer.replaceAll('{tenantid}', () => String(claims.tid)),
    claims,
  );
}

function decode(token: string) {
  let header: { alg?: unknown; kid?: unknown; typ?: unknown };
  let claims: JWTPayload;
  try {
    header = decodeProtectedHeader(token);
    claims = decodeJwt(token);
  } catch {
    throw new SaltError(
      'SALT_TOKEN_MALFORMED',
      'the token is not a JWT: three parts of base64url, separated by dots',
    );
  }
  if (header.alg !== 'RS256')
    throw new SaltError('SALT_TOKEN_ALGORITHM', 'the token must be signed with RS256');
  // RFC 8725, section 3.11: an issuer also signs other tokens, such as access tokens (RFC 9068, at+jwt).
  if (header.typ !== undefined && !(typeof header.typ === 'string' && /^jwt$/i.test(header.typ))) {
    throw new SaltError('SALT_TOKEN_TYPE', 'the token is not an ID token: its "typ" must be JWT, or absent');
  }
  if (typeof header.kid !== 'string')
    throw new SaltError('SALT_TOKEN_KEY_UNKNOWN', 'the token does not name its key (kid)');
  const { iss, aud, azp, tid } = claims as Record<string, unknown>;
  if (typeof iss !== 'string') throw new SaltError('SALT_TOKEN_CLAIM', 'the token\'s "iss" must be a string');
  if (typeof aud !== 'string')
    throw new SaltError('SALT_TOKEN_CLAIM', 'the token\'s "aud" must be one string, not an array');
  if (azp !== undefined && typeof azp !== 'string')
    throw new SaltError('SALT_TOKEN_CLAIM', 'the token\'s "azp" must be a string');
  return { kid: header.kid, claims: { iss, aud, azp, tid } };
}

/** Maps jose's errors. They are not kept as causes, since they contain claims of the token. */
function refuse(error: unknown): never {
  throw causeOf(error) ?? error;
}

function causeOf(error: unknown): SaltError | undefined {
  if (error instanceof errors.JWTExpired)
    return new SaltError('SALT_TOKEN_EXPIRED', 'the token has expired (exp)');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return error.claim === 'nbf' && error.reason === 'check_failed'
      ? new SaltError('SALT_TOKEN_NOT_YET_VALID', 'the token is not valid yet (nbf)')
      : new SaltError('SALT_TOKEN_CLAIM', `the token's "${error.claim}" is missing or invalid`);
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return new SaltError('SALT_TOKEN_SIGNATURE', "the token's signature is invalid");
  }
  if (error instanceof errors.JOSEError)
    return new SaltError('SALT_TOKEN_MALFORMED', 'the token is not a JWT that can be verified');
  return undefined;
}
