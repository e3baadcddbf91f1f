/** Decides whether the enclave may have executed a failed call, and whether to retry the call. */
import { AttestationError } from '../attestation/index.ts';
import { CodedError } from '../errors.ts';
import { failedToConnect } from '../fetch.ts';
import type { SuiCode } from '../sui/errors.ts';
import { pause } from '../waiting.ts';
import {
  ClientError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
  NotRegisteredError,
  UnauthenticatedError,
} from './errors.ts';

/** Errors of calls that the enclave may have executed. */
const unknownOutcomes = new WeakSet<object>();

/**
 * Codes of the errors of `sui-enclave/sui` whose transaction was executed, or may have been. These errors
 * contain the transaction's digest.
 */
const EXECUTED_CODES: readonly SuiCode[] = ['SUI_UNKNOWN_OUTCOME', 'SUI_NOT_VISIBLE'];

/**
 * Returns whether the enclave may have executed the call that threw this error. If so, find out before you
 * call again, unless repeating the call is harmless.
 *
 * Returns false if nothing was sent, or if the request was refused with a status from 400 to 499. (A host
 * can forge a refusal that is not sealed, but such a host could also send the request twice.)
 *
 * Also returns true for the error of a Sui transaction that was executed, or may have been
 * (UnknownOutcomeError, NotVisibleError): look up its `digest`.
 *
 * @param error what a call of `EnclaveClient` threw, including the reason of its signal, or what sending a
 *   transaction threw. For a value that is not an object, the result is true
 */
export function mayHaveExecuted(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || unknownOutcomes.has(error)) return true;
  return error instanceof CodedError && EXECUTED_CODES.includes(error.code as SuiCode);
}

/** One call, over all its attempts. */
export interface CallState {
  /** Whether any byte of a request may have been sent, and no refusal says that the request had no effect. */
  hasLeft: boolean;
}

/** Sends a request of a call, and notes whether it may have had an effect. */
export async function sendOnce<T>(state: CallState, send: () => Promise<T>): Promise<T> {
  const { hasLeft } = state;
  state.hasLeft = true;
  try {
    return await send();
  } catch (error) {
    if (isWithoutEffect(error)) state.hasLeft = hasLeft;
    throw error;
  }
}

function isWithoutEffect(error: unknown): boolean {
  if (error instanceof EnclaveUnreachableError) return failedToConnect(error.cause);
  return error instanceof EnclaveRefusedError && error.status < 500;
}

/** Maximum number of attempts of an idempotent call. */
const ATTEMPTS = 5;
/** Longest pause before the second attempt, in milliseconds. Each further limit is twice as long. */
const FIRST_PAUSE_MS = 100;

export interface RetryOptions {
  readonly idempotent: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Makes a call. Repeats an idempotent call after a failure if another attempt, or another enclave, may
 * succeed.
 */
export async function withAttempts<T>(
  { idempotent, signal }: RetryOptions,
  attempt: (state: CallState) => Promise<T>,
): Promise<T> {
  const state: CallState = { hasLeft: false };
  try {
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt(state);
      } catch (error) {
        if (!idempotent || attempts === ATTEMPTS || signal?.aborted || !isTransient(error)) throw error;
      }
      // The pause is random, so that callers that have lost the same enclave do not all return at the same
      // time.
      await pause(FIRST_PAUSE_MS * 2 ** (attempts - 1) * (0.5 + Math.random() / 2), signal);
    }
  } catch (error) {
    if (state.hasLeft && typeof error === 'object' && error !== null) unknownOutcomes.add(error);
    throw error;
  }
}

const TRANSIENT_REASONS: readonly string[] = ['connection', 'broken', 'timeout', 'unknown'];
const TRANSIENT_STATUSES: readonly number[] = [502, 503, 504];
/**
 * Codes of failures after which another attempt may succeed: another enclave behind the same URL may have the
 * right image, key or registration.
 */
const TRANSIENT_CODES: readonly string[] = [
  'CLIENT_SIGNATURE',
  'CLIENT_NOT_REGISTERED',
  'POLICY_PCRS',
  'POLICY_PUBLIC_KEY',
];

function isTransient(error: unknown): boolean {
  if (error instanceof EnclaveUnreachableError) return TRANSIENT_REASONS.includes(error.reason);
  if (error instanceof EnclaveRefusedError) return TRANSIENT_STATUSES.includes(error.status);
  if (error instanceof UnauthenticatedError) {
    return TRANSIENT_STATUSES.includes(error.status) || isKeyUnknown(error);
  }
  if (error instanceof NotRegisteredError && error.reason === 'retired') return false;
  return (
    (error instanceof ClientError || error instanceof AttestationError) &&
    TRANSIENT_CODES.includes(error.code)
  );
}

/** Returns whether the answer says that the request was sealed to another key. */
export function isKeyUnknown(error: unknown): error is UnauthenticatedError {
  return error instanceof UnauthenticatedError && error.serverCode === 'SEALED_KEY_UNKNOWN';
}
