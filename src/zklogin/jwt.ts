/** Reads a token and demands of it what a login and the circuit need. Its signature is the salt service's and the proof's to check. */
import { type Profile, SUI_V1, valueFault } from './claims.ts';
import {
  ClaimError,
  MalformedTokenError,
  NonceMismatchError,
  ProfileError,
  TokenTimeError,
} from './errors.ts';
import { isIssuedBy } from './issuer.ts';

/** A decoded JWT payload: every field is optional (RFC 7519, section 4.1). */
export interface JwtPayload {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | readonly string[];
  /** Seconds since 1970, as the next two. */
  readonly exp?: number;
  readonly nbf?: number;
  readonly iat?: number;
  readonly jti?: string;
  readonly [name: string]: unknown;
}

/** What a login needs of a token. */
export interface LoginClaims {
  /** As the token spells it. */
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
}

/** How far the provider's clock may be from ours. */
const MAX_SKEW_SECONDS = 60;

/**
 * The payload of a JWT, whose signature is not checked.
 *
 * @throws MalformedTokenError; ClaimError where a field is there and of another type
 */
export function decodeJwtPayload(jwt: string): JwtPayload {
  const payload = parseObject(parts(jwt).payload, 'payload');
  const { aud } = payload;
  for (const name of ['iss', 'sub', 'jti']) demand(payload, name, 'a text', isText);
  for (const name of ['exp', 'nbf', 'iat']) demand(payload, name, 'a number', Number.isFinite);
  if (aud !== undefined && !isText(aud) && !(Array.isArray(aud) && aud.every(isText))) {
    throw new ClaimError('aud', 'must be a text or a list of texts');
  }
  return payload;
}

/** @throws the errors of errors.ts that are about tokens */
export function checkToken(
  jwt: string,
  expected: { readonly issuer: string; readonly clientId: string; readonly nonce: string },
  now: number,
): LoginClaims {
  const { header, payload } = parts(jwt);
  if (parseObject(header, 'header')['alg'] !== 'RS256') {
    throw new MalformedTokenError('the token is not signed with RS256');
  }
  const claims = decodeJwtPayload(jwt);
  const { iss, sub, aud, exp, nbf, iat, tid } = claims;
  if (iss === undefined) throw new ClaimError('iss', 'is missing');
  if (!isIssuedBy(expected.issuer, { iss, tid }))
    throw new ClaimError('iss', 'is not the issuer of this provider');
  if (Array.isArray(aud)) throw new ClaimError('aud', 'is a list: Sui takes a single client id');
  if (aud !== expected.clientId)
    throw new ClaimError('aud', 'is not the client id that the login was begun with');
  if (sub === undefined) throw new ClaimError('sub', 'is missing');
  if (claims['nonce'] !== expected.nonce) throw new NonceMismatchError();
  if (exp === undefined) throw new ClaimError('exp', 'is missing');
  const seconds = now / 1000;
  if (exp <= seconds - MAX_SKEW_SECONDS) throw new TokenTimeError('the token has expired (exp): begin again');
  if (Math.max(nbf ?? 0, iat ?? 0) > seconds + MAX_SKEW_SECONDS) {
    throw new TokenTimeError("the token is not valid yet (nbf, iat): is this device's clock right?");
  }
  checkProfile({ header, payload }, { iss, sub, aud, nonce: expected.nonce }, SUI_V1);
  return { issuer: iss, subject: sub, audience: aud };
}

/** The JWT's first part, as proofs repeat it. */
export function headerOf(jwt: string): string {
  return parts(jwt).header;
}

/** Where a piece of the payload's base64url stands, modulo 4, or null where it does not. */
export function findInPayload(jwt: string, piece: string): number | null {
  const index = parts(jwt).payload.indexOf(piece);
  return piece === '' || index === -1 ? null : index % 4;
}

/** What no proof could be made for is told now, not by a prover's failure. */
function checkProfile(
  { header, payload }: { header: string; payload: string },
  claims: { iss: string; sub: string; aud: string; nonce: string },
  profile: Profile,
): void {
  if (header.length > profile.header) {
    throw new ProfileError(
      `the token's header has ${header.length} characters; ${profile.name} takes ${profile.header}`,
    );
  }
  // SHA-256 pads by a bit and a length of 64 bits to blocks of 64 bytes (FIPS 180-4, section 5.1.1).
  const padded = Math.ceil((header.length + 1 + payload.length + 9) / 64) * 64;
  if (padded > profile.paddedUnsignedJwt) {
    throw new ProfileError(
      `the token has ${padded} bytes to hash; ${profile.name} takes ${profile.paddedUnsignedJwt}`,
    );
  }
  const text = decodeBase64url(payload, 'payload');
  checkIssuer(text, claims.iss, profile);
  checkClaim(text, 'sub', claims.sub, profile.subject, profile.extendedSubject, profile);
  checkClaim(text, 'aud', claims.aud, profile.audience, profile.extendedAudience, profile);
  checkClaim(text, 'nonce', claims.nonce, profile.extendedNonce, profile.extendedNonce, profile);
}

/**
 * That a proof can be made by this claim: the token has it as a text, written as the circuit takes it.
 *
 * @param name at most 30 characters
 * @throws MalformedTokenError, ClaimError
 */
export function checkKeyClaim(jwt: string, name: string): void {
  const { payload } = parts(jwt);
  const value = parseObject(payload, 'payload')[name];
  if (value === undefined) throw new ClaimError(name, 'is missing');
  if (!isText(value)) throw new ClaimError(name, 'must be a text');
  const text = decodeBase64url(payload, 'payload');
  checkClaim(text, name, value, SUI_V1.subject, SUI_V1.extendedSubject, SUI_V1);
}

/**
 * The circuit doesn't parse the issuer: the proof shows it as the token writes it, in base64, and validators parse
 * that as JSON. So its name and value may be written with escapes, as PHP and AWS Cognito do with `/`.
 */
function checkIssuer(payload: string, value: string, profile: Profile): void {
  requireUsable('iss', value, profile.extendedIssuer);
  const claim = findClaim(payload, 'iss', String.raw`(?:i|\\u0069)(?:s|\\u0073){2}`);
  if (claim === null || JSON.parse(claim.value) !== value) {
    throw new ClaimError(
      'iss',
      'does not stand in the payload as a claim of its own: no proof can be made for it',
    );
  }
  requireShort('iss', claim.extended, profile.extendedIssuer);
}

/** The circuit hashes the bytes of name and value as they are: both must be written without an escape. */
function checkClaim(
  payload: string,
  name: string,
  value: string,
  maxQuoted: number,
  maxExtended: number,
  profile: Profile,
): void {
  requireUsable(name, value, maxQuoted);
  const claim = findClaim(payload, name, name.replace(/[.*+?^${}()|[\]/-]/g, '\\$&'));
  if (claim?.value !== `"${value}"`) {
    throw new ClaimError(name, 'is written with escapes: no proof can be made for it');
  }
  requireShort(name, claim.extended, maxExtended);
  if (claim.whiteSpace > profile.whiteSpace) {
    throw new ClaimError(name, `has ${claim.whiteSpace} characters of white space: too many for a proof`);
  }
}

/**
 * A claim as the payload writes it. Neither the circuit nor validators know of nesting: the name must stand there
 * once, or a proof could be of another value than the one that was parsed.
 *
 * @param pattern of the name's spellings
 * @throws ClaimError
 */
function findClaim(
  payload: string,
  name: string,
  pattern: string,
): { extended: string; value: string; whiteSpace: number } | null {
  const names = payload.match(new RegExp(`"${pattern}"\\s*:`, 'g')) ?? [];
  if (names.length > 1) {
    throw new ClaimError(
      name,
      'is there more than once, perhaps within another claim: no proof is sure of it',
    );
  }
  const text = String.raw`"(?:[^"\\]|\\.)*"`;
  const claim = new RegExp(`"${pattern}"(\\s*):(\\s*)(${text})(\\s*)[,}]`).exec(payload);
  if (!claim) return null;
  const [extended, beforeColon = '', beforeValue = '', value = '', afterValue = ''] = claim;
  return { extended, value, whiteSpace: (beforeColon + beforeValue + afterValue).length };
}

function requireUsable(name: string, value: string, maxQuoted: number): void {
  const fault = valueFault(value, maxQuoted);
  if (fault !== null) throw new ClaimError(name, `${fault}: no proof can be made for it`);
}

function requireShort(name: string, extended: string, max: number): void {
  if (extended.length <= max) return;
  throw new ClaimError(name, `takes ${extended.length} characters with its name: too many for a proof`);
}

function parts(jwt: string): { header: string; payload: string } {
  const [, header, payload] = /^([\w-]+)\.([\w-]+)\.[\w-]+$/.exec(jwt) ?? [];
  if (header === undefined || payload === undefined) {
    throw new MalformedTokenError('the token is no JWT: three parts of base64url with dots between them');
  }
  return { header, payload };
}

function parseObject(part: string, what: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(decodeBase64url(part, what));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // The parser's message quotes its input.
  }
  throw new MalformedTokenError(`the token's ${what} is no JSON object`);
}

function decodeBase64url(part: string, what: string): string {
  try {
    const binary = atob(part.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
  } catch {
    throw new MalformedTokenError(`the token's ${what} is not UTF-8 in base64url`);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function demand(
  payload: Record<string, unknown>,
  name: string,
  what: string,
  is: (value: unknown) => boolean,
): void {
  if (payload[name] !== undefined && !is(payload[name])) throw new ClaimError(name, `must be ${what}`);
}
