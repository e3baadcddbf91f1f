import { EnclaveError } from '../errors.ts';

/** Everything that can go wrong between a caller and the NSM. No message holds bytes of a request or an answer. */
export abstract class NsmError extends EnclaveError {}

/** There is no driver to talk to: the native addon or the device node is missing. */
export class NsmUnavailable extends NsmError {
  readonly code = 'NSM_UNAVAILABLE';

  constructor(missing: string, options?: ErrorOptions) {
    super(
      `The NSM driver is missing: ${missing}. This is expected outside a Nitro Enclave, for example when running locally.`,
      options,
    );
  }
}

/** The kernel refused an `open` or an `ioctl`. */
export class NsmIo extends NsmError {
  readonly code = 'NSM_IO';
  /** Name of the error number, for example `EIO`; the decimal number itself where it has no name. */
  readonly errno: string;
  readonly syscall: 'open' | 'ioctl';

  constructor(syscall: 'open' | 'ioctl', errno: string, options?: ErrorOptions) {
    super(`The NSM device failed: ${syscall} gave ${errno}.`, options);
    this.errno = errno;
    this.syscall = syscall;
  }
}

/**
 * No answer within the deadline. The request may still reach the NSM and take effect, so an `ExtendPCR` or a
 * `LockPCR` that timed out says nothing about the register.
 */
export class NsmTimeout extends NsmError {
  readonly code = 'NSM_TIMEOUT';

  constructor(deadlineMs: number) {
    super(`The NSM did not answer within ${deadlineMs} ms.`);
  }
}

/** Too many calls wait for the NSM, which answers one at a time. The request was not sent. */
export class NsmBusy extends NsmError {
  readonly code = 'NSM_BUSY';
  readonly retryAfterSeconds: number;

  constructor(waiting: number, retryAfterSeconds = 1) {
    super(`The NSM is busy: ${waiting} calls are already waiting.`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The device was closed before the call was answered. */
export class NsmClosed extends NsmError {
  readonly code = 'NSM_CLOSED';

  constructor() {
    super('The NSM device was closed.');
  }
}

/** The answer is not what the NSM's interface allows for the operation. */
export class NsmProtocol extends NsmError {
  readonly code = 'NSM_PROTOCOL';

  constructor(reason: string, options?: ErrorOptions) {
    super(`The NSM gave an answer that cannot be used: ${reason}.`, options);
  }
}

/** An argument is of the wrong type or out of bounds. Nothing was sent. */
export class NsmInput extends NsmError {
  readonly code = 'NSM_INPUT';

  constructor(reason: string) {
    super(`Bad argument for the NSM: ${reason}.`);
  }
}

/** `InvalidArgument`: the NSM finds an argument invalid. */
export class NsmInvalidArgument extends NsmError {
  readonly code = 'NSM_INVALID_ARGUMENT';
}

/** `InvalidIndex`: there is no such PCR. */
export class NsmInvalidIndex extends NsmError {
  readonly code = 'NSM_INVALID_INDEX';
}

/** `InvalidResponse`: the NSM's own answer does not belong to the request. */
export class NsmInvalidResponse extends NsmError {
  readonly code = 'NSM_INVALID_RESPONSE';
}

/** `ReadOnlyIndex`: the PCR is locked. */
export class NsmReadOnlyIndex extends NsmError {
  readonly code = 'NSM_READ_ONLY_INDEX';
}

/** `InvalidOperation`: the NSM does not know or does not allow the operation. */
export class NsmInvalidOperation extends NsmError {
  readonly code = 'NSM_INVALID_OPERATION';
}

/** `BufferTooSmall`: the answer does not fit. */
export class NsmBufferTooSmall extends NsmError {
  readonly code = 'NSM_BUFFER_TOO_SMALL';
}

/** `InputTooLarge`: the NSM finds the request or one of its fields too large. */
export class NsmInputTooLarge extends NsmError {
  readonly code = 'NSM_INPUT_TOO_LARGE';
}

/** `InternalError`: the NSM itself failed. */
export class NsmInternalError extends NsmError {
  readonly code = 'NSM_INTERNAL_ERROR';
}

const refusals = new Map<string, new (message: string) => NsmError>([
  ['InvalidArgument', NsmInvalidArgument],
  ['InvalidIndex', NsmInvalidIndex],
  ['InvalidResponse', NsmInvalidResponse],
  ['ReadOnlyIndex', NsmReadOnlyIndex],
  ['InvalidOperation', NsmInvalidOperation],
  ['BufferTooSmall', NsmBufferTooSmall],
  ['InputTooLarge', NsmInputTooLarge],
  ['InternalError', NsmInternalError],
]);

/**
 * The error for `{"Error": name}` in answer to `operation`; the names are those of `ErrorCode` in AWS's NSM API.
 * A name outside that list is not repeated in the message: it is whatever the other side wrote.
 */
export function refusal(operation: string, name: string): NsmError {
  const Refusal = refusals.get(name);
  return Refusal
    ? new Refusal(`The NSM refused ${operation}: ${name}.`)
    : new NsmProtocol(`an unknown error name in answer to ${operation}`);
}
