/** Errors of `EnclaveClient`: one stable `code` for each cause. */
import { CodedError } from '../errors.ts';
import { UNREACHABLE, type UnreachableReason } from '../fetch.ts';

export type { UnreachableReason } from '../fetch.ts';

/** Every code of a ClientError, and what it means. */
export const CLIENT_CODES = {
  CLIENT_OPTION: 'An option of the constructor or of a call, or the path of a call, is invalid.',
  CLIENT_UNREACHABLE: 'The enclave did not answer: see EnclaveUnreachableError.',
  CLIENT_REFUSED: 'The enclave answered with an error: see EnclaveRefusedError.',
  CLIENT_ANSWER_TOO_LARGE: 'The answer is larger than 1 MiB.',
  CLIENT_MALFORMED_ANSWER:
    "The answer doesn't have the form of the endpoint, or its data doesn't match the schema.",
  CLIENT_INTENT: 'The answer has the intent of another signed type.',
  CLIENT_SIGNATURE: 'No attested key signed the answer.',
  CLIENT_STALE: 'The signed answer is too old: see AnswerTimeError.',
  CLIENT_FUTURE: 'The signed answer is dated in the future: see AnswerTimeError.',
  CLIENT_EXPECT: 'The signed answer is to another request: see UnexpectedAnswerError.',
  CLIENT_UNAUTHENTICATED:
    'The answer to a sealed request is not sealed, so anyone on the path may have written it: see UnauthenticatedError.',
  CLIENT_SEALED_ANSWER: 'The answer was not sealed by the enclave for this request, or was changed.',
  CLIENT_SEALING_UNSUPPORTED: 'The platform lacks an algorithm that sealing needs.',
  CLIENT_NOT_REGISTERED: 'No contract accepts the answer under the config on Sui: see NotRegisteredError.',
  CLIENT_SCHEMA: "The application's schema has an unknown form, or is too large.",
  CLIENT_SIGNED_BYTES: 'The bytes are not exactly one message of the signed type.',
  CLIENT_FAILED:
    'Something outside this library failed, such as the loading of a chunk or a function among the options: see the `cause`.',
  CLIENT_ATTESTED_KEY: 'The attestation document does not bind an ed25519 key.',
} as const;

/** Stable code of a ClientError: a key of CLIENT_CODES. */
export type ClientCode = keyof typeof CLIENT_CODES;

/** An error of the client itself. If the attestation fails, the client throws an AttestationError instead. */
export class ClientError extends CodedError<ClientCode> {}

/** The enclave did not answer: the network failed, or the answer took too long. */
export class EnclaveUnreachableError extends ClientError {
  /** Reason why no complete answer came, as far as the platform gives it. */
  readonly reason: UnreachableReason;

  /** @param causeCode the platform's code of the failure, where it gives one */
  constructor(url: string, reason: UnreachableReason, causeCode: string | null, options: ErrorOptions) {
    const failure = causeCode === null ? UNREACHABLE[reason] : `${UNREACHABLE[reason]} (${causeCode})`;
    super('CLIENT_UNREACHABLE', `the enclave at ${url} did not answer: ${failure}`, options);
    this.reason = reason;
  }
}

type RefusedProperties = Pick<
  EnclaveRefusedError,
  'status' | 'serverCode' | 'serverMessage' | 'retryAfterSeconds'
>;

/** The enclave answered with an error. */
export class EnclaveRefusedError extends ClientError {
  /** The HTTP status of the answer. */
  readonly status: number;
  /** The stable code that the enclave gave, if any. */
  readonly serverCode: string | null;
  /**
   * The message that the enclave gave, if any: one line of at most 500 characters. It is not signed, so the
   * host may have written it: show it as plain text, and don't act on it.
   */
  readonly serverMessage: string | null;
  /**
   * Seconds until the next attempt, from `Retry-After` or its counterpart in a sealed answer; null if not
   * given.
   */
  readonly retryAfterSeconds: number | null;

  constructor(path: string, { status, serverCode, serverMessage, retryAfterSeconds }: RefusedProperties) {
    const code = serverCode === null ? '' : ` (${serverCode})`;
    const hint =
      serverCode === 'NSM_UNAVAILABLE'
        ? ': the server runs outside an enclave. For development, start it with ATTEST=emulated sui-enclave dev'
        : '';
    super('CLIENT_REFUSED', `the enclave answered ${path} with status ${status}${code}${hint}`);
    this.status = status;
    this.serverCode = serverCode;
    this.serverMessage = serverMessage;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * The answer to a sealed request is not sealed. The enclave sends such answers before it can open a request
 * (`BODY_TOO_LARGE`, `OVERLOADED`, `SEALED_KEY_UNKNOWN`), but anyone on the path can forge one: don't act on
 * this error.
 */
export class UnauthenticatedError extends ClientError {
  /** The HTTP status of the answer. */
  readonly status: number;
  /** The code in the answer, if any; not authenticated. */
  readonly serverCode: string | null;

  constructor(status: number, serverCode: string | null) {
    const code = serverCode === null ? '' : ` (${serverCode})`;
    const message = `the answer to the sealed request has status ${status}${code} and is not sealed: it may not be the enclave's`;
    super('CLIENT_UNAUTHENTICATED', message);
    this.status = status;
    this.serverCode = serverCode;
  }
}

/** The signed answer is older than `maxAnswerAgeMs`, or dated more than a minute in the future. */
export class AnswerTimeError extends ClientError {
  /** Time of the signed data, in milliseconds since 1970. */
  readonly timestampMs: bigint;

  constructor(code: 'CLIENT_STALE' | 'CLIENT_FUTURE', timestampMs: bigint, limitMs: number) {
    const fault =
      code === 'CLIENT_STALE'
        ? `more than ${limitMs} ms ago by this clock: a host may have held it back, or the clock is wrong`
        : `more than ${limitMs} ms ahead of this clock: one of the clocks is wrong`;
    super(code, `the signed answer is dated ${timestampMs} ms since 1970, ${fault}`);
    this.timestampMs = timestampMs;
  }

  /** Returns `timestampMs` in decimal, as in the JSON of an answer: `JSON.stringify` throws on a bigint. */
  toJSON(): object {
    return { ...this, timestampMs: this.timestampMs.toString() };
  }
}

/** The signed answer belongs to another request: a property of its data differs from `expect`. */
export class UnexpectedAnswerError extends ClientError {
  /** Name of the property of `data` that differs. */
  readonly member: string;

  constructor(member: string) {
    super(
      'CLIENT_EXPECT',
      `${JSON.stringify(member)} of the signed answer is not the expected one: the answer is genuine, but to another request`,
    );
    this.member = member;
  }
}

const NOT_REGISTERED = {
  unregistered:
    'the key that signed the answer is not registered at the latest version of the config: register the enclave',
  destroyed: 'the key that signed the answer was destroyed: restart the enclave, and register its new key',
  'too old':
    'the key that signed the answer is older than the config allows: restart the enclave, and register its new key',
  retired: 'the config is retired',
} as const;

/**
 * No contract would accept the answer. If the config is retired, no contract would accept any answer. Only
 * clients of `EnclaveClient.forConfig` throw this error.
 */
export class NotRegisteredError extends ClientError {
  /** Reason why no contract accepts an answer: the state of the key or the config. */
  readonly reason: keyof typeof NOT_REGISTERED;
  /** The key that signed, 32 bytes; null if the config is retired. */
  readonly publicKey: Uint8Array | null;
  /** Object id of the EnclaveConfig that the client trusts. */
  readonly configId: string;

  constructor(reason: keyof typeof NOT_REGISTERED, publicKey: Uint8Array | null, configId: string) {
    const message = `no contract accepts an answer under the config ${configId}: ${NOT_REGISTERED[reason]}`;
    super('CLIENT_NOT_REGISTERED', message);
    this.reason = reason;
    this.publicKey = publicKey;
    this.configId = configId;
  }
}
