/**
 * Parses a token and checks it for a login and the circuit. The salt service and the proof verify its
 * signature.
 */
import { type Profile, SUI_V1, valueFault } from '../token/claims.ts';
import { isIssuedBy } from '../token/issuer.ts';
import { ClaimError, ZkLoginError } from './errors.ts';

/** A decoded JWT payload, in which every field is optional (RFC 7519, section 4.1). */
export interface JwtPayload {
  /** Issuer of the token (RFC 7519, section 4.1.1). */
  readonly iss?: string;
  /** Subject, the user at the issuer (RFC 7519, section 4.1.2). */
  readonly sub?: string;
  /** Audience, the client id (RFC 7519, section 4.1.3). */
  readonly aud?: string | readonly string[];
  /** End of validity, in seconds since 1970 (RFC 7519, section 4.1.4). */
  readonly exp?: number;
  /** Start of validity, in seconds since 1970 (RFC 7519, section 4.1.5). */
  readonly nbf?: number;
  /** Time of issue, in seconds since 1970 (RFC 7519, section 4.1.6). */
  readonly iat?: number;
  /** Id of the token (RFC 7519, section 4.1.7). */
  readonly jti?: string;
  readonly [name: string]: unknown;
}

/** The claims that a login needs. */
export interface LoginClaims {
  /** Issuer as written in the token. */
  readonly issuer: string;
  /** The user at the issuer: the claim `sub`. */
  readonly subject: string;
  /** The client id: the claim `aud`. */
  readonly audience: string;
}

/** The maximum difference between the provider's clock and ours. */
const MAX_SKEW_SECONDS = 60;

/**
 * Returns the payload of a JWT. Does not verify the signature.
 *
 * @throws ZkLoginError: ZKLOGIN_TOKEN; ClaimError for a field of the wrong type
 */
export function decodeJwtPayload(jwt: string): JwtPayload {
  const payload = parseObject(splitJwt(jwt).payload, 'payload');
  const { aud } = payload;
  for (const name of ['iss', 'sub', 'jti']) requireType(payload, name, 'a string', isString);
  for (const name of ['exp', 'nbf', 'iat']) requireType(payload, name, 'a number', Number.isFinite);
  if (aud !== undefined && !isString(aud) && !(Array.isArray(aud) && aud.every(isString))) {
    throw new ClaimError('aud', 'must be a string or an array of strings');
  }
  return payload;
}

/**
 * Checks a token for a login, and returns the claims that the login needs.
 *
 * @param now the current time, in milliseconds since 1970
 * @throws ZkLoginError: ZKLOGIN_TOKEN, ZKLOGIN_TOKEN_TIME, ZKLOGIN_NONCE, ZKLOGIN_PROFILE; ClaimError
 */
export function checkToken(
  jwt: string,
  expected: { readonly issuer: string; readonly clientId: string; readonly nonce: string },
  now: number,
): LoginClaims {
  const { header, payload } = splitJwt(jwt);
  if (parseObject(header, 'header')['alg'] !== 'RS256') {
    throw new ZkLoginError('ZKLOGIN_TOKEN', 'the token is not signed with RS256');
  }
  const claims = decodeJwtPayload(jwt);
  const { iss, sub, aud, exp, nbf, iat, tid } = claims;
  if (iss === undefined) throw new ClaimError('iss', 'is missing');
  if (!isIssuedBy(expected.issuer, { iss, tid }))
    throw new ClaimError('iss', 'is not the issuer of this provider');
  if (Array.isArray(aud)) throw new ClaimError('aud', 'is an array: Sui accepts a single client id');
  if (aud !== expected.clientId) throw new ClaimError('aud', 'is not the client id of the login');
  if (sub === undefined) throw new ClaimError('sub', 'is missing');
  if (claims['nonce'] !== expected.nonce) {
    const message = "the token's nonce does not match this session's ephemeral key: begin again";
    throw new ZkLoginError('ZKLOGIN_NONCE', message);
  }
  if (exp === undefined) throw new ClaimError('exp', 'is missing');
  const seconds = now / 1000;
  if (exp <= seconds - MAX_SKEW_SECONDS)
    throw new ZkLoginError('ZKLOGIN_TOKEN_TIME', 'the token has expired (exp): begin again');
  if (Math.max(nbf ?? 0, iat ?? 0) > seconds + MAX_SKEW_SECONDS) {
    throw new ZkLoginError(
      'ZKLOGIN_TOKEN_TIME',
      'the token is not valid yet (nbf, iat): check the clock of this device',
    );
  }
  checkProfile({ header, payload }, { iss, sub, aud, nonce: expected.nonce }, SUI_V1);
  return { issuer: iss, subject: sub, audience: aud };
}

/** Returns the header of a JWT in base64url, which proofs contain. */
export function readHeader(jwt: string): string {
  return splitJwt(jwt).header;
}

/** Returns the position of a substring in the payload's base64url, modulo 4, or null if there is no match. */
export function findInPayload(jwt: string, piece: string): number | null {
  const index = splitJwt(jwt).payload.indexOf(piece);
  return piece === '' || index === -1 ? null : index % 4;
}

/** Checks the circuit's limits here, so that a token without a possible proof never reaches a prover. */
function checkProfile(
  { header, payload }: { header: string; payload: string },
  claims: { iss: string; sub: string; aud: string; nonce: string },
  profile: Profile,
): void {
  if (header.length > profile.header) {
    throw new ZkLoginError(
      'ZKLOGIN_PROFILE',
      `the token's header has ${header.length} characters; the limit of ${profile.name} is ${profile.header}`,
    );
  }
  // SHA-256 appends a bit and a 64-bit length, and pads to blocks of 64 bytes (FIPS 180-4, section 5.1.1).
  const padded = Math.ceil((header.length + 1 + payload.length + 9) / 64) * 64;
  if (padded > profile.paddedUnsignedJwt) {
    throw new ZkLoginError(
      'ZKLOGIN_PROFILE',
      `the token has ${padded} bytes to hash; the limit of ${profile.name} is ${profile.paddedUnsignedJwt}`,
    );
  }
  const text = decodeBase64url(payload, 'payload');
  checkIssuer(text, claims.iss, profile);
  checkClaim(text, 'sub', claims.sub, profile.subject, profile.extendedSubject, profile);
  checkClaim(text, 'aud', claims.aud, profile.audience, profile.extendedAudience, profile);
  checkClaim(text, 'nonce', claims.nonce, profile.extendedNonce, profile.extendedNonce, profile);
}

/**
 * Checks that a proof can use this claim: the token has it as a string, in a form that the circuit accepts.
 *
 * @param name at most 30 characters
 * @throws ZkLoginError: ZKLOGIN_TOKEN; ClaimError
 */
export function checkKeyClaim(jwt: string, name: string): void {
  const { payload } = splitJwt(jwt);
  const value = parseObject(payload, 'payload')[name];
  if (value === undefined) throw new ClaimError(name, 'is missing');
  if (!isString(value)) throw new ClaimError(name, 'must be a string');
  const text = decodeBase64url(payload, 'payload');
  checkClaim(text, name, value, SUI_V1.subject, SUI_V1.extendedSubject, SUI_V1);
}

/**
 * Checks the issuer, which the circuit doesn't parse. The proof reveals the issuer in base64, as written in
 * the token, and validators parse that as JSON. The claim's name and value may therefore contain escapes,
 * such as those that PHP and AWS Cognito write for `/`.
 */
function checkIssuer(payload: string, value: string, profile: Profile): void {
  requireUsable('iss', value, profile.extendedIssuer);
  const claim = findClaim(payload, 'iss', String.raw`(?:i|\\u0069)(?:s|\\u0073){2}`);
  if (claim === null || JSON.parse(claim.value) !== value) {
    throw new ClaimError('iss', 'is not a top-level claim of the payload: no proof can be made for it');
  }
  requireShort('iss', claim.extended, profile.extendedIssuer);
}

/**
 * Checks a claim. Since the circuit hashes the raw bytes of name and value, neither may contain an escape.
 */
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
 * Returns a claim as written in the payload. Neither the circuit nor validators understand nesting, so the
 * name must occur only once. Otherwise, a proof could be about a value other than the parsed one.
 *
 * @param pattern matches every spelling of the name
 * @returns null if the payload has no such claim, or if its value is not a string
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
      'occurs more than once, perhaps within another claim: a proof could be for either',
    );
  }
  const string = String.raw`"(?:[^"\\]|\\.)*"`;
  const claim = new RegExp(`"${pattern}"(\\s*):(\\s*)(${string})(\\s*)[,}]`).exec(payload);
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
  throw new ClaimError(name, `has ${extended.length} characters with its name: too many for a proof`);
}

function splitJwt(jwt: string): { header: string; payload: string } {
  const [, header, payload] = /^([\w-]+)\.([\w-]+)\.[\w-]+$/.exec(jwt) ?? [];
  if (header === undefined || payload === undefined) {
    throw new ZkLoginError(
      'ZKLOGIN_TOKEN',
      'the token is not a JWT: three parts in base64url, separated by dots',
    );
  }
  return { header, payload };
}

function parseObject(part: string, label: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(decodeBase64url(part, label));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // The parser's error is dropped, since it quotes its input.
  }
  throw new ZkLoginError('ZKLOGIN_TOKEN', `the token's ${label} is not a JSON object`);
}

function decodeBase64url(part: string, label: string): string {
  try {
    const binary = atob(part.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
  } catch {
    throw new ZkLoginError('ZKLOGIN_TOKEN', `the token's ${label} is not UTF-8 in base64url`);
  }
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function requireType(
  payload: Record<string, unknown>,
  name: string,
  expectation: string,
  isValid: (value: unknown) => boolean,
): void {
  if (payload[name] !== undefined && !isValid(payload[name]))
    throw new ClaimError(name, `must be ${expectation}`);
}
