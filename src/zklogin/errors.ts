/** Why a zkLogin call fails: one class for each cause, each with a stable `code`. None holds a token, salt, key or proof. */
import { EnclaveError } from '../errors.ts';

export abstract class ZkLoginError extends EnclaveError {}

/** An argument can't be used; the message names it. */
export class InvalidOptionError extends ZkLoginError {
  readonly code = 'ZKLOGIN_OPTION';
}

/** The storage would outlive the session, is not there, or holds what this library did not write. */
export class StorageError extends ZkLoginError {
  readonly code = 'ZKLOGIN_STORAGE';
}

/** No login was begun in this session, or it is complete already. */
export class NoLoginError extends ZkLoginError {
  readonly code = 'ZKLOGIN_NO_LOGIN';

  constructor(message = 'no login is under way in this session: call beginLogin') {
    super(message);
  }
}

/** What came back is not an answer to the login: another place, or parameters that it can't have. */
export class RedirectError extends ZkLoginError {
  readonly code = 'ZKLOGIN_REDIRECT';
}

/** The provider did not log the user in. */
export class ProviderRefusedError extends ZkLoginError {
  readonly code = 'ZKLOGIN_PROVIDER_REFUSED';
  /** The provider's error code (RFC 6749, section 4.1.2.1), where it looks like one. */
  readonly reason: string | null;

  constructor(reason: string | null) {
    super(`the provider did not log the user in${reason === null ? '' : `: ${reason}`}`);
    this.reason = reason;
  }
}

/** The answer belongs to another login, or was used before. */
export class StateMismatchError extends ZkLoginError {
  readonly code = 'ZKLOGIN_STATE';

  constructor() {
    super('the answer carries another state than the login that was begun: begin again');
  }
}

/** The token is no JWT. */
export class MalformedTokenError extends ZkLoginError {
  readonly code = 'ZKLOGIN_TOKEN';
}

/** A claim is missing or wrong, or the circuit can't take it. */
export class ClaimError extends ZkLoginError {
  readonly code = 'ZKLOGIN_CLAIM';
  /** Its name. */
  readonly claim: string;

  constructor(claim: string, what: string) {
    super(`the token's "${claim}" ${what}`);
    this.claim = claim;
  }
}

/** The token was made for another ephemeral key. */
export class NonceMismatchError extends ZkLoginError {
  readonly code = 'ZKLOGIN_NONCE';

  constructor() {
    super("the token's nonce is not that of this session's ephemeral key: begin again");
  }
}

/** The token is over, or not valid yet. */
export class TokenTimeError extends ZkLoginError {
  readonly code = 'ZKLOGIN_TOKEN_TIME';
}

/** The token is larger than the circuit takes. */
export class ProfileError extends ZkLoginError {
  readonly code = 'ZKLOGIN_PROFILE';
}

/** A service can't be reached. */
export class ServiceUnreachableError extends ZkLoginError {
  readonly code = 'ZKLOGIN_UNREACHABLE';
}

/** A service gave no whole answer in time. */
export class ServiceTimeoutError extends ZkLoginError {
  readonly code = 'ZKLOGIN_TIMEOUT';
}

/** A service answered with an error. */
export class ServiceRefusedError extends ZkLoginError {
  readonly code = 'ZKLOGIN_REFUSED';
  /** HTTP status. */
  readonly status: number;
  /** The stable code that the service gave, if it gave one. */
  readonly serverCode: string | null;

  constructor(service: string, status: number, serverCode: string | null) {
    super(`the ${service} answered with status ${status}${serverCode === null ? '' : ` (${serverCode})`}`);
    this.status = status;
    this.serverCode = serverCode;
  }
}

/** A service's answer is not of its shape. */
export class MalformedAnswerError extends ZkLoginError {
  readonly code = 'ZKLOGIN_MALFORMED_ANSWER';
}

/** The proof shows another header or issuer than the token, or the network refuses it. */
export class ProofMismatchError extends ZkLoginError {
  readonly code = 'ZKLOGIN_PROOF';
}

/** The epoch has passed maxEpoch. */
export class SessionExpiredError extends ZkLoginError {
  readonly code = 'ZKLOGIN_EXPIRED';

  constructor(currentEpoch: number, maxEpoch: number) {
    super(
      `epoch ${currentEpoch} is past maxEpoch ${maxEpoch}: a new ephemeral key pair and a new proof are needed; call beginLogin`,
    );
  }
}

/** The ephemeral key and the proof are not in this session's storage. */
export class NoSessionError extends ZkLoginError {
  readonly code = 'ZKLOGIN_NO_SESSION';

  constructor() {
    super(
      'the ephemeral key pair and its proof are not in the session storage: a new key pair and a new proof are needed; call beginLogin',
    );
  }
}

/** The transaction's sender is not the session's address. */
export class SenderError extends ZkLoginError {
  readonly code = 'ZKLOGIN_SENDER';
}
