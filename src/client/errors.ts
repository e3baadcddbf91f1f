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

/** No answer: the network failed or the time was over. */
export class EnclaveUnreachableError extends ClientError {
  readonly code = 'CLIENT_UNREACHABLE';

  constructor(path: string, options: ErrorOptions) {
    super(`no answer from the enclave at ${path}: it can't be reached, or took too long`, options);
  }
}

/** The enclave answered with an error. */
export class EnclaveRefusedError extends ClientError {
  readonly code = 'CLIENT_REFUSED';
  /** HTTP status. */
  readonly status: number;
  /** The stable code that the enclave gave, if it gave one. */
  readonly serverCode: string | null;

  constructor(path: string, status: number, serverCode: string | null) {
    const code = serverCode === null ? '' : ` (${serverCode})`;
    const hint =
      serverCode === 'NSM_UNAVAILABLE'
        ? ': it runs outside an enclave. For development, start it by make dev ATTEST=emulated'
        : '';
    super(`the enclave answered ${path} with status ${status}${code}${hint}`);
    this.status = status;
    this.serverCode = serverCode;
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
