import { type ErrorTable, errorClass } from 'sui-enclave-server';

export const SALT_ERRORS = {
  SALT_TOKEN_MALFORMED: { status: 400, meaning: 'not a JWT' },
  SALT_TOKEN_ALGORITHM: { status: 401, meaning: 'not signed with RS256' },
  SALT_TOKEN_TYPE: { status: 401, meaning: 'a JWT, but not an ID token' },
  SALT_TOKEN_KEY_UNKNOWN: {
    status: 401,
    meaning: 'the issuer has no key with the id that the token names, or the token names none',
  },
  SALT_TOKEN_SIGNATURE: { status: 401, meaning: 'the signature is invalid' },
  SALT_TOKEN_EXPIRED: { status: 401, meaning: 'the token has expired (exp)' },
  SALT_TOKEN_NOT_YET_VALID: { status: 401, meaning: 'the token is not valid yet (nbf, iat)' },
  SALT_TOKEN_CLAIM: { status: 401, meaning: 'a claim is missing or of the wrong type' },
  SALT_ISSUER_NOT_ALLOWED: { status: 403, meaning: 'the issuer is not in SALT_CLIENTS' },
  SALT_CLIENT_NOT_ALLOWED: { status: 403, meaning: 'the client id (aud) is not in SALT_CLIENTS' },
  SALT_PRESENTER_NOT_ALLOWED: {
    status: 403,
    meaning: 'the token was issued to a party (azp) that is neither the client nor one of its presenters',
  },
  SALT_SUBJECT_UNUSABLE: {
    status: 422,
    meaning: 'the token is genuine, but no zkLogin proof can be made for its subject',
  },
  SALT_RATE_LIMITED: { status: 429, meaning: 'too many requests of this user or address' },
  SALT_ISSUER_UNREACHABLE: { status: 502, meaning: "the connection to the host of the issuer's keys failed" },
  SALT_ISSUER_REFUSED: {
    status: 502,
    meaning: "the host of the issuer's keys answered with a status other than 200",
  },
  SALT_ISSUER_MALFORMED: {
    status: 502,
    meaning: "the issuer's key set, or the key that the token names, is malformed",
  },
  SALT_BUSY: { status: 503, meaning: 'SALT_MAX_VERIFICATIONS tokens are being verified' },
  SALT_ISSUER_TIMEOUT: { status: 504, meaning: 'the issuer did not give its keys within 5 s' },
} as const satisfies ErrorTable;

export type SaltCode = keyof typeof SALT_ERRORS;

export class SaltError extends errorClass(SALT_ERRORS) {}
