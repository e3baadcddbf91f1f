/** Why something on Sui did not work: one class for each cause, each with a stable `code`. Browser-safe. */
import { EnclaveError } from '../errors.ts';

/** The base of everything that `sui-enclave/sui` throws. */
export abstract class SuiError extends EnclaveError {}

/** A value can't be used in a transaction; nothing was sent. */
export class InvalidValueError extends SuiError {
  readonly code = 'SUI_VALUE';
}

/** The node gave no answer. */
export class NodeUnreachableError extends SuiError {
  readonly code = 'SUI_NODE_UNREACHABLE';

  constructor(reason: string, options?: ErrorOptions) {
    super(`no answer from the Sui node (${reason}): check its address and the network`, options);
  }
}

/** The transaction was sent, and no answer told what became of it: only the chain knows. */
export class UnknownOutcomeError extends SuiError {
  readonly code = 'SUI_UNKNOWN_OUTCOME';
  /** Of the transaction that was sent. */
  readonly digest: string;

  constructor(digest: string, reason: string, options?: ErrorOptions) {
    super(
      `the transaction ${digest} was sent, but no answer told what became of it: look it up before you send another (${reason})`,
      options,
    );
    this.digest = digest;
  }
}

/** The node refused the request, for a reason that has no class of its own. */
export class NodeRefusedError extends SuiError {
  readonly code = 'SUI_NODE_REFUSED';
  /** Name of the gRPC status, or null where the node gave none. */
  readonly status: string | null;

  constructor(status: string | null, message: string, options?: ErrorOptions) {
    super(`the Sui node refuses this${status === null ? '' : ` (${status})`}: ${message}`, options);
    this.status = status;
  }
}

/** The node's answer is not what was asked for. */
export class NodeAnswerError extends SuiError {
  readonly code = 'SUI_NODE_ANSWER';
}

/** There is no such object, or it was deleted. */
export class ObjectNotFoundError extends SuiError {
  readonly code = 'SUI_OBJECT_NOT_FOUND';
  readonly objectId: string;

  constructor(objectId: string) {
    super(`there is no object ${objectId} on this network, or it was deleted`);
    this.objectId = objectId;
  }
}

/** The object is something else than it was taken for. */
export class WrongObjectTypeError extends SuiError {
  readonly code = 'SUI_OBJECT_TYPE';
  readonly objectId: string;

  constructor(objectId: string, expected: string, found: string) {
    super(`the object ${objectId} must be ${expected}, but it is ${found}`);
    this.objectId = objectId;
  }
}

/** The sender's SUI, or the gas budget, does not cover the transaction. */
export class GasTooLowError extends SuiError {
  readonly code = 'SUI_GAS';

  constructor(message: string, options?: ErrorOptions) {
    super(`too little gas: ${message}. Send SUI to the sender, or raise the gas budget`, options);
  }
}

/** An owned object of the transaction is promised to another one that is under way. */
export class EquivocationError extends SuiError {
  readonly code = 'SUI_EQUIVOCATION';

  constructor(message: string, options?: ErrorOptions) {
    super(
      `another transaction holds a lock on an object or gas coin of this one: wait for it, or for the next epoch (up to a day) if neither can finish; do not send from one address twice at a time. The node says: ${message}`,
      options,
    );
  }
}

/** An object changed between the reading and the sending. */
export class ObjectChangedError extends SuiError {
  readonly code = 'SUI_OBJECT_CHANGED';

  constructor(message: string, options?: ErrorOptions) {
    super(
      `an object of the transaction has changed meanwhile, perhaps by an earlier sending of it that was not answered: look that one up; otherwise run this again, with a transaction that is built anew. The node says: ${message}`,
      options,
    );
  }
}

/** A Move function aborted. */
export class MoveAbortError extends SuiError {
  readonly code = 'SUI_MOVE_ABORT';
  /** `module::NAME` of the error where the node names it, else `module::number`. */
  readonly abort: string;
  /** `package::module::function`, as far as the node says. */
  readonly location: string;

  constructor(abort: string, location: string, explanation: string) {
    super(`${explanation} (${abort}, in ${location})`);
    this.abort = abort;
    this.location = location;
  }
}

/** The transaction failed in another way than by an abort. */
export class ExecutionFailedError extends SuiError {
  readonly code = 'SUI_EXECUTION';

  constructor(message: string) {
    super(`the transaction fails: ${message}`);
  }
}
