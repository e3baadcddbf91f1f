import { type ErrorTable, errorClass } from 'sui-enclave-server';

export const SALT_ERRORS = {
  SALT_TOKEN_MALFORMED: { status: 400, meaning: 'not a JWT' },
  SALT_TOKEN_ALGORITHM: { status: 401, meaning: 'not signed with RS256' },
  SALT_TOKEN_TYPE: {
    status: 401,
    meaning: 'a JWT that is not an ID token, such as an access token (`at+jwt`)',
  },
  SALT_TOKEN_KEY_UNKNOWN: {
    status: 401,
    meaning: 'the issuer does not have the key that the token names (`kid`), or the token names no key',
  },
  SALT_TOKEN_SIGNATURE: { status: 401, meaning: "the issuer's key did not sign the token" },
  SALT_TOKEN_EXPIRED: {
    status: 401,
    meaning: 'the token has expired (`exp`), with a tolerance of one minute',
  },
  SALT_TOKEN_NOT_YET_VALID: {
    status: 401,
    meaning: 'the token is not valid yet (`nbf`, `iat`), with a tolerance of one minute',
  },
  SALT_TOKEN_CLAIM: {
    status: 401,
    meaning: 'a claim is missing or of the wrong type (`aud` must be a single string); the message names it',
  },
  SALT_ISSUER_NOT_ALLOWED: { status: 403, meaning: 'the issuer is not in `SALT_CLIENTS`' },
  SALT_CLIENT_NOT_ALLOWED: { status: 403, meaning: 'the client id (`aud`) is not in `SALT_CLIENTS`' },
  SALT_PRESENTER_NOT_ALLOWED: {
    status: 403,
    meaning:
      "the token's `azp`, the party that it was issued to, is neither the client id nor one of the entry's `presenters`",
  },
  SALT_SUBJECT_UNUSABLE: {
    status: 422,
    meaning: "the token is genuine, but the zkLogin circuit can't hold its `sub`",
  },
  SALT_RATE_LIMITED: {
    status: 429,
    meaning: 'too many requests from this user or address: see `Retry-After`',
  },
  SALT_ISSUER_UNREACHABLE: { status: 502, meaning: "no connection to the host of the issuer's keys" },
  SALT_ISSUER_REFUSED: { status: 502, meaning: "the host of the issuer's keys gave a status other than 200" },
  SALT_ISSUER_MALFORMED: {
    status: 502,
    meaning: "the issuer's key set, or the key that the token names, is malformed",
  },
  SALT_BUSY: {
    status: 503,
    meaning: '`SALT_MAX_VERIFICATIONS` tokens are being verified: see `Retry-After`',
  },
  SALT_ISSUER_TIMEOUT: { status: 504, meaning: "the issuer's keys did not arrive within 5 s" },
} as const satisfies ErrorTable;

export type SaltCode = keyof typeof SALT_ERRORS;

export class SaltError extends errorClass(SALT_ERRORS) {}
