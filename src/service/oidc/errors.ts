/**
 * Errors of token verification. They are internal: each area answers with its own codes. No message contains
 * the value of a claim.
 */
import { CodedError } from 'sui-enclave/errors';

/** Every code of an OidcError, and what it means. */
export const OIDC_CODES = {
  TOKEN_MALFORMED: 'not a JWT',
  TOKEN_ALGORITHM: 'not signed with RS256',
  TOKEN_TYPE: 'a JWT, but not an ID token',
  TOKEN_KEY_UNKNOWN: 'the issuer has no key with the id that the token names, or the token names no key',
  TOKEN_SIGNATURE: 'the signature is invalid',
  TOKEN_EXPIRED: 'the token has expired (exp)',
  TOKEN_NOT_YET_VALID: 'the token is not valid yet (nbf, iat)',
  TOKEN_CLAIM: 'a claim is missing or of the wrong type: see TokenClaimError',
  ISSUER_NOT_ALLOWED: 'no client of this issuer is accepted',
  CLIENT_NOT_ALLOWED: 'this client id (aud) is not accepted',
  PRESENTER_NOT_ALLOWED: 'this presenter (azp) is neither the client nor one of its presenters',
  ISSUER_UNREACHABLE: "the connection to the host of the issuer's keys failed",
  ISSUER_REFUSED: "the host of the issuer's keys answered with a status other than 200",
  ISSUER_MALFORMED: "the issuer's key set, or the key that the token names, is malformed",
  ISSUER_TIMEOUT: 'the issuer did not send its keys in time',
} as const;

export type OidcCode = keyof typeof OIDC_CODES;

export class OidcError extends CodedError<OidcCode> {}

/** A claim that every ID token must have is missing, or a claim has the wrong type. */
export class TokenClaimError extends OidcError {
  /** The name of the claim. */
  readonly claim: string;
  /** The part of the message after the claim's name. */
  readonly fault: string;

  constructor(claim: string, fault: string) {
    super('TOKEN_CLAIM', `the token's "${claim}" ${fault}`);
    this.claim = claim;
    this.fault = fault;
  }
}
