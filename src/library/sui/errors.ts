/** Errors of reads and transactions on Sui: one stable `code` for each cause. Browser-safe. */
import { CodedError } from '../errors.ts';

/** Every code of a SuiError, and what it means. */
export const SUI_CODES = {
  SUI_VALUE: 'A value is invalid. Nothing was sent.',
  SUI_NODE_UNREACHABLE: "The node didn't answer.",
  SUI_UNKNOWN_OUTCOME: 'The transaction was sent, but its outcome is unknown: see UnknownOutcomeError.',
  SUI_NOT_VISIBLE: 'The transaction was executed, but the node does not show it yet: see NotVisibleError.',
  SUI_NODE_REFUSED:
    'The node refused the request, for a reason that has no code of its own: see NodeRefusedError.',
  SUI_NODE_ANSWER: "The node's answer is invalid.",
  SUI_OBJECT_NOT_FOUND: 'The object does not exist, or was deleted: see ObjectNotFoundError.',
  SUI_OBJECT_TYPE: 'The object does not have the expected type: see WrongObjectTypeError.',
  SUI_GAS: "The sender's SUI, or the gas budget, doesn't cover the transaction.",
  SUI_EQUIVOCATION: 'Another transaction holds a lock on an owned object of this one.',
  SUI_OBJECT_CHANGED: 'An object changed after it was read and before the transaction was executed.',
  SUI_MOVE_ABORT: 'A Move function aborted: see MoveAbortError.',
  SUI_MOVE_RUNTIME: 'An instruction of a Move function failed: see MoveRuntimeError.',
  SUI_EXECUTION: 'The transaction failed, but not in a Move function.',
} as const;

/** Stable code of a SuiError: a key of SUI_CODES. */
export type SuiCode = keyof typeof SUI_CODES;

/** Everything that `sui-enclave/sui` throws. */
export class SuiError extends CodedError<SuiCode> {}

/**
 * The transaction was sent, and the node's answer, if any, does not tell its outcome: look it up on chain.
 */
export class UnknownOutcomeError extends SuiError {
  /** Digest of the transaction that was sent, in base58. */
  readonly digest: string;

  constructor(digest: string, reason: string, options?: ErrorOptions) {
    super(
      'SUI_UNKNOWN_OUTCOME',
      `the transaction ${digest} was sent, but its outcome is unknown (${reason}): look it up before you send another`,
      options,
    );
    this.digest = digest;
  }
}

/**
 * The transaction was executed, but the node's reads did not show it in time, or the wait was ended. Don't
 * send another transaction instead. `client.core.waitForTransaction({ digest })` waits again.
 */
export class NotVisibleError extends SuiError {
  /** Digest of the transaction that was executed, in base58. */
  readonly digest: string;

  /** @param reason why the wait ended */
  constructor(digest: string, reason: string, options?: ErrorOptions) {
    super(
      'SUI_NOT_VISIBLE',
      `the transaction ${digest} was executed, but the node does not show it yet (${reason}): don't send another one instead; wait before you build on it`,
      options,
    );
    this.digest = digest;
  }
}

/** The node refused the request, for a reason that has no code of its own. */
export class NodeRefusedError extends SuiError {
  /** Name of the gRPC status, or null if the node gave none. */
  readonly status: string | null;

  constructor(status: string | null, message: string, options?: ErrorOptions) {
    const name = status === null ? '' : ` (${status})`;
    super('SUI_NODE_REFUSED', `the Sui node refused the request${name}: ${message}`, options);
    this.status = status;
  }
}

/** The object does not exist, or was deleted, or is wrapped in another object. */
export class ObjectNotFoundError extends SuiError {
  /** Id of the object that was not found. */
  readonly objectId: string;

  /** @param advice what to do */
  constructor(objectId: string, advice = 'check the id and the network') {
    super(
      'SUI_OBJECT_NOT_FOUND',
      `there is no object ${objectId} on this network, or it was deleted or put into another object: ${advice}`,
    );
    this.objectId = objectId;
  }
}

/** The object does not have the expected type. */
export class WrongObjectTypeError extends SuiError {
  /** Id of the object that has another type. */
  readonly objectId: string;

  constructor(objectId: string, expected: string, actualType: string) {
    super('SUI_OBJECT_TYPE', `the object ${objectId} must be ${expected}, but it is ${actualType}`);
    this.objectId = objectId;
  }
}

/** A Move function aborted. */
export class MoveAbortError extends SuiError {
  /** `module::NAME` of the error if the node gives its code or name, else `module::number`. */
  readonly abort: string;
  /** `package::module::function`, as far as the node gives it. */
  readonly location: string;

  constructor(abort: string, location: string, explanation: string) {
    super('SUI_MOVE_ABORT', `${explanation} (${abort}, in ${location})`);
    this.abort = abort;
    this.location = location;
  }
}

/**
 * An instruction of a Move function failed: an overflow, a division by zero, a cast or a shift that
 * does not fit, an index out of range, or calls that are nested too deep. The chain does not record
 * which of these it was.
 */
export class MoveRuntimeError extends SuiError {
  /** `package::module::function`, as far as the node gives it. */
  readonly location: string;

  constructor(location: string) {
    super(
      'SUI_MOVE_RUNTIME',
      `an instruction of the contract failed: an overflow, a division by zero, a cast or a shift that does not fit, an index out of range, or calls that are nested too deep; the chain does not say which. Check the function's arguments (in ${location})`,
    );
    this.location = location;
  }
}
