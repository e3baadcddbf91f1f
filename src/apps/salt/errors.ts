import {
  Forbidden,
  InvalidInput,
  TooManyRequests,
  Unacceptable,
  Unauthenticated,
  Unavailable,
  UpstreamFailed,
  UpstreamTimeout,
} from '../../errors.ts';

/** Not three parts of base64url with a JSON object in the first two. */
export class TokenMalformed extends InvalidInput {
  override readonly code = 'SALT_TOKEN_MALFORMED';
}

export class TokenAlgorithm extends Unauthenticated {
  readonly code = 'SALT_TOKEN_ALGORITHM';
}

/** A JWT, but of another type than an ID token's. */
export class TokenType extends Unauthenticated {
  readonly code = 'SALT_TOKEN_TYPE';
}

/** The issuer has no such key, or the token names none. */
export class TokenKeyUnknown extends Unauthenticated {
  readonly code = 'SALT_TOKEN_KEY_UNKNOWN';
}

export class TokenSignature extends Unauthenticated {
  readonly code = 'SALT_TOKEN_SIGNATURE';
}

export class TokenExpired extends Unauthenticated {
  readonly code = 'SALT_TOKEN_EXPIRED';
}

export class TokenNotYetValid extends Unauthenticated {
  readonly code = 'SALT_TOKEN_NOT_YET_VALID';
}

/** A claim is missing or of another type; the message names it. */
export class TokenClaim extends Unauthenticated {
  readonly code = 'SALT_TOKEN_CLAIM';
}

export class IssuerNotAllowed extends Forbidden {
  readonly code = 'SALT_ISSUER_NOT_ALLOWED';
}

export class ClientNotAllowed extends Forbidden {
  readonly code = 'SALT_CLIENT_NOT_ALLOWED';
}

/** The token was given to another than the client, and than those that its entry names (`azp`). */
export class PresenterNotAllowed extends Forbidden {
  readonly code = 'SALT_PRESENTER_NOT_ALLOWED';
}

/** The token is genuine, yet no zkLogin proof can be made for its subject. */
export class SubjectUnusable extends Unacceptable {
  readonly code = 'SALT_SUBJECT_UNUSABLE';
}

export class RateLimited extends TooManyRequests {
  readonly code = 'SALT_RATE_LIMITED';
}

export class Busy extends Unavailable {
  readonly code = 'SALT_BUSY';
  override readonly retryAfterSeconds = 1;
}

export class IssuerUnreachable extends UpstreamFailed {
  readonly code = 'SALT_ISSUER_UNREACHABLE';
}

/** The issuer's keys were answered with another status than 200. */
export class IssuerRefused extends UpstreamFailed {
  readonly code = 'SALT_ISSUER_REFUSED';
}

/** What the issuer answered is no set of keys, or the one that is needed is no key. */
export class IssuerMalformed extends UpstreamFailed {
  readonly code = 'SALT_ISSUER_MALFORMED';
}

export class IssuerSlow extends UpstreamTimeout {
  readonly code = 'SALT_ISSUER_TIMEOUT';
}
