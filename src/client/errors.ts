/** Why `EnclaveClient` gives no answer: one class for each cause, each with a stable `code`. */
import { EnclaveError } from '../errors.ts';

/**
 * The base of what the client throws of its own. Errors about the attestation itself are subclasses of
 * AttestationError.
 */
export abstract class ClientError extends EnclaveError {}

/** An option of the constructor, or the path of a call, can't be used. */
export class InvalidClientOptionError extends ClientError {
  readonly code = 'CLIENT_OPTION';
}

/** Why there was no answer, as far as the platform tells. */
const UNREACHABLE = {
  /** No whole answer within `timeoutMs`, or no connection within the platform's own time. */
  timeout: 'it took too long',
  dns: 'its host name was not found',
  /** Refused, reset or no way to it; or what answers does not speak HTTP. */
  connection: 'the connection failed',
  /** Its certificate is not valid for this host, or it does not speak TLS. */
  tls: 'no secure connection could be made (TLS)',
  redirect: 'it redirects, which is not followed: give the URL that it leads to',
  /** The answer began, but did not come to its end. */
  broken: 'the connection broke in the middle of the answer',
  /** All that a browser tells. */
  unknown:
    "it can't be reached, or redirects; or, in a page, the browser withheld the answer: the enclave does not allow the page's origin (CORS), or has http under a page of https",
} as const;

export type UnreachableReason = keyof typeof UNREACHABLE;

/** No answer: the network failed or the time was over. */
export class EnclaveUnreachableError extends ClientError {
  readonly code = 'CLIENT_UNREACHABLE';
  readonly reason: UnreachableReason;

  constructor(path: string, reason: UnreachableReason, options: ErrorOptions) {
    super(`no answer from the enclave at ${path}: ${UNREACHABLE[reason]}`, options);
    this.reason = reason;
  }
}

/** The enclave answered with an error. */
export class EnclaveRefusedError extends ClientError {
  readonly code = 'CLIENT_REFUSED';
  /** HTTP status. */
  readonly status: number;
  /** The stable code that the enclave gave, if it gave one. */
  readonly serverCode: string | null;
  /**
   * The text that came with it: one line of at most 500 characters. Nobody signed it, so that it may be the host's:
   * show it as text, and do not act on it.
   */
  readonly serverMessage: string | null;

  constructor(path: string, status: number, serverCode: string | null, serverMessage: string | null) {
    const code = serverCode === null ? '' : ` (${serverCode})`;
    const hint =
      serverCode === 'NSM_UNAVAILABLE'
        ? ': it runs outside an enclave. For development, start it by make dev ATTEST=emulated'
        : '';
    super(`the enclave answered ${path} with status ${status}${code}${hint}`);
    this.status = status;
    this.serverCode = serverCode;
    this.serverMessage = serverMessage;
  }
}

/** The answer is larger than any that an enclave gives. */
export class AnswerTooLargeError extends ClientError {
  readonly code = 'CLIENT_ANSWER_TOO_LARGE';

  constructor(path: string, limit: number) {
    super(`the answer to ${path} has more than ${limit} bytes`);
  }
}

/** The answer is not of the endpoint's shape, or its data not of the schema. */
export class MalformedAnswerError extends ClientError {
  readonly code = 'CLIENT_MALFORMED_ANSWER';

  constructor(path: string, what: string, options?: ErrorOptions) {
    super(`the answer to ${path} can't be used: ${what}`, options);
  }
}

/** The answer is signed for another purpose than the one asked for. */
export class IntentMismatchError extends ClientError {
  readonly code = 'CLIENT_INTENT';

  constructor(found: number, expected: number) {
    super(`the answer has the intent ${found}, but the schema's is ${expected}`);
  }
}

/** The signed answer is older than `maxAnswerAgeMs`: kept back, or of data that is not renewed. */
export class StaleAnswerError extends ClientError {
  readonly code = 'CLIENT_STALE';
  /** Of the signed data, in milliseconds since 1970. */
  readonly timestampMs: bigint;

  constructor(timestampMs: bigint, maxAgeMs: number) {
    super(
      `the signed answer is of ${timestampMs} ms since 1970, more than ${maxAgeMs} ms ago by this clock: a host may have kept it back, or the clock is wrong`,
    );
    this.timestampMs = timestampMs;
  }
}

/** The signed answer is of a time to come. */
export class FutureAnswerError extends ClientError {
  readonly code = 'CLIENT_FUTURE';
  /** Of the signed data, in milliseconds since 1970. */
  readonly timestampMs: bigint;

  constructor(timestampMs: bigint, maxAheadMs: number) {
    super(
      `the signed answer is of ${timestampMs} ms since 1970, more than ${maxAheadMs} ms ahead of this clock: one of the clocks is wrong`,
    );
    this.timestampMs = timestampMs;
  }
}

/** The signed answer is to another request: a member of its data is not what `expect` says. */
export class UnexpectedAnswerError extends ClientError {
  readonly code = 'CLIENT_EXPECT';
  /** The member of `data`. */
  readonly member: string;

  constructor(member: string) {
    super(
      `the signed answer has another ${JSON.stringify(member)} than was asked for: it is genuine, but to another request`,
    );
    this.member = member;
  }
}

/** The attested key can't be a signer's. */
export class AttestedKeyError extends ClientError {
  readonly code = 'CLIENT_ATTESTED_KEY';

  constructor() {
    super('the attestation document binds no ed25519 public key of 32 bytes');
  }
}

/** The answer is not what the attested key signed. */
export class AnswerSignatureError extends ClientError {
  readonly code = 'CLIENT_SIGNATURE';

  constructor() {
    super("the answer's signature does not match its data and the attested key: do not use it");
  }
}
