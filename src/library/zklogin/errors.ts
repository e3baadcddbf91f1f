/** Errors of zkLogin calls: one stable `code` for each cause. No error holds a token, salt, key or proof. */
import { CodedError } from '../errors.ts';
import { UNREACHABLE, type UnreachableReason } from '../fetch.ts';

export type { UnreachableReason } from '../fetch.ts';

/** Every code of a ZkLoginError, and what it means. */
export const ZKLOGIN_CODES = {
  ZKLOGIN_OPTION: 'An argument is invalid. The message names it.',
  ZKLOGIN_STORAGE:
    "The storage would outlive the session, is missing, or holds what this library didn't write.",
  ZKLOGIN_NO_LOGIN: 'No login was begun in this session, or it was cancelled, replaced or completed.',
  ZKLOGIN_NO_SESSION: "The ephemeral key and the proof are not in this session's storage.",
  ZKLOGIN_REDIRECT: 'The redirect is not an answer to the login: another URL, or invalid parameters.',
  ZKLOGIN_STATE: 'The answer belongs to another login, or was used before.',
  ZKLOGIN_PROVIDER_REFUSED: "The provider didn't log the user in: see ProviderRefusedError.",
  ZKLOGIN_TOKEN: 'The token is not a JWT with an RS256 signature.',
  ZKLOGIN_TOKEN_TIME: 'The token has expired, or is not valid yet.',
  ZKLOGIN_NONCE: 'The token was issued for another ephemeral key.',
  ZKLOGIN_CLAIM: "A claim is missing or wrong, or exceeds the circuit's limits: see ClaimError.",
  ZKLOGIN_PROFILE: "The token exceeds the circuit's limits.",
  ZKLOGIN_UNREACHABLE: 'A service did not answer: see ServiceUnreachableError.',
  ZKLOGIN_TIMEOUT: 'A service did not answer in time.',
  ZKLOGIN_REFUSED: 'A service answered with an error: see ServiceRefusedError.',
  ZKLOGIN_MALFORMED_ANSWER: 'The answer of a service is invalid.',
  ZKLOGIN_LOAD: 'A part of this library that is loaded on demand could not be loaded.',
  ZKLOGIN_PROOF: "The header or issuer of the proof differs from the token's, or the network refuses it.",
  ZKLOGIN_CLOSED:
    'The login was given up: its window was closed, another login began, or it took too long. Wallets only.',
  ZKLOGIN_NOT_CONFIRMED: 'The user did not confirm, so nothing was signed. Wallets only.',
  ZKLOGIN_EXPIRED: 'The current epoch is past maxEpoch.',
  ZKLOGIN_SENDER: "The sender of the transaction is not the session's address.",
  ZKLOGIN_SPONSOR: 'The sponsor returned a transaction other than the one that it was asked to pay for.',
} as const;

/** Stable code of a ZkLoginError: a key of ZKLOGIN_CODES. */
export type ZkLoginCode = keyof typeof ZKLOGIN_CODES;

/**
 * An error of `sui-enclave/zklogin`. If a Sui node fails, `sui-enclave/zklogin` throws a SuiError instead.
 */
export class ZkLoginError extends CodedError<ZkLoginCode> {}

/** The provider didn't log the user in. */
export class ProviderRefusedError extends ZkLoginError {
  /**
   * The provider's error code (RFC 6749, section 4.1.2.1), or null if the answer has no text of that form.
   */
  readonly reason: string | null;

  constructor(reason: string | null) {
    const suffix = reason === null ? '' : `: ${reason}`;
    super('ZKLOGIN_PROVIDER_REFUSED', `the provider did not log the user in${suffix}`);
    this.reason = reason;
  }
}

/** A claim is missing or wrong, or exceeds the circuit's limits. */
export class ClaimError extends ZkLoginError {
  /** The name of the claim. */
  readonly claim: string;

  /** @param problem follows the name of the claim in the message */
  constructor(claim: string, problem: string) {
    super('ZKLOGIN_CLAIM', `the token's "${claim}" ${problem}`);
    this.claim = claim;
  }
}

/**
 * A service did not answer. There is no `cause`, since it might contain the request, and with it the token.
 */
export class ServiceUnreachableError extends ZkLoginError {
  /** Reason why no complete answer came, as far as the platform reports it. */
  readonly reason: UnreachableReason;

  constructor(service: string, reason: UnreachableReason) {
    super('ZKLOGIN_UNREACHABLE', `the ${service} did not answer: ${UNREACHABLE[reason]}`);
    this.reason = reason;
  }
}

/** A service answered with an error. */
export class ServiceRefusedError extends ZkLoginError {
  /** HTTP status of the answer. */
  readonly status: number;
  /** The stable code in the service's answer, if it has one. */
  readonly serverCode: string | null;
  /** Seconds to wait before the next attempt, if the service names them. */
  readonly retryAfterSeconds: number | null;

  /** @param advice text for the reader of the message, without anything from the request */
  constructor(
    service: string,
    {
      status,
      serverCode,
      retryAfterSeconds,
    }: Pick<ServiceRefusedError, 'status' | 'serverCode' | 'retryAfterSeconds'>,
    advice?: string,
  ) {
    const code = serverCode === null ? '' : ` (${serverCode})`;
    const suffix = advice === undefined ? '' : `: ${advice}`;
    super('ZKLOGIN_REFUSED', `the ${service} answered with status ${status}${code}${suffix}`);
    this.status = status;
    this.serverCode = serverCode;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
