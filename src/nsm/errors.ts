import { CodedError, quantity } from '../errors.ts';

/** Everything that can go wrong between a caller and the NSM. The last eight are the NSM's own `ErrorCode`s. */
export const NSM_ERRORS = {
  NSM_UNAVAILABLE: 'the native addon or the device node is missing',
  NSM_IO: 'the kernel refused an open or an ioctl',
  NSM_TIMEOUT:
    'no answer within the deadline; the request may still take effect, so after an ExtendPCR or LockPCR the state of the register is unknown',
  NSM_BUSY: 'too many calls wait for the NSM, which answers one at a time; the request was not sent',
  NSM_CLOSED: 'the device was closed before the call was answered',
  NSM_PROTOCOL: "the answer violates the NSM's interface",
  NSM_INPUT: 'an argument is of the wrong type or out of bounds; nothing was sent',
  NSM_INVALID_ARGUMENT: 'InvalidArgument: an argument is invalid',
  NSM_INVALID_INDEX: 'InvalidIndex: the PCR does not exist',
  NSM_INVALID_RESPONSE: "InvalidResponse: the NSM's own answer does not belong to the request",
  NSM_READ_ONLY_INDEX: 'ReadOnlyIndex: the PCR is locked',
  NSM_INVALID_OPERATION: 'InvalidOperation: the operation is unknown or not allowed',
  NSM_BUFFER_TOO_SMALL: 'BufferTooSmall: the answer does not fit',
  NSM_INPUT_TOO_LARGE: 'InputTooLarge: the request or one of its fields is too large',
  NSM_INTERNAL_ERROR: 'InternalError: the NSM itself failed',
} as const;

export type NsmCode = keyof typeof NSM_ERRORS;

/** No message contains bytes of a request or an answer. */
export class NsmError extends CodedError<NsmCode> {}

/** The kernel refused an `open` or an `ioctl`. */
export class NsmIo extends NsmError {
  /** Name of the error number, for example `EIO`; the decimal number itself if it has no name. */
  readonly errno: string;
  readonly syscall: 'open' | 'ioctl';

  constructor(syscall: 'open' | 'ioctl', errno: string, options?: ErrorOptions) {
    super('NSM_IO', `The NSM device failed: ${syscall} gave ${errno}.`, options);
    this.errno = errno;
    this.syscall = syscall;
  }
}

/** Too many calls wait for the NSM, which answers one at a time. The request was not sent. */
export class NsmBusy extends NsmError {
  readonly retryAfterSeconds: number;

  constructor(waiting: number, retryAfterSeconds = 1) {
    super('NSM_BUSY', `The NSM is busy, with ${quantity(waiting, 'call')} in its queue.`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function unavailable(missing: string, options?: ErrorOptions): NsmError {
  return new NsmError(
    'NSM_UNAVAILABLE',
    `The NSM driver is missing: ${missing}. This is expected outside a Nitro Enclave, for example when running locally.`,
    options,
  );
}

export function unusableAnswer(reason: string, options?: ErrorOptions): NsmError {
  return new NsmError('NSM_PROTOCOL', `The NSM gave an answer that cannot be used: ${reason}.`, options);
}

export function badArgument(reason: string): NsmError {
  return new NsmError('NSM_INPUT', `Bad argument for the NSM: ${reason}.`);
}

const REFUSALS: ReadonlyMap<string, NsmCode> = new Map([
  ['InvalidArgument', 'NSM_INVALID_ARGUMENT'],
  ['InvalidIndex', 'NSM_INVALID_INDEX'],
  ['InvalidResponse', 'NSM_INVALID_RESPONSE'],
  ['ReadOnlyIndex', 'NSM_READ_ONLY_INDEX'],
  ['InvalidOperation', 'NSM_INVALID_OPERATION'],
  ['BufferTooSmall', 'NSM_BUFFER_TOO_SMALL'],
  ['InputTooLarge', 'NSM_INPUT_TOO_LARGE'],
  ['InternalError', 'NSM_INTERNAL_ERROR'],
]);

/**
 * The error for `{"Error": name}` in answer to `operation`; the names are those of `ErrorCode` in AWS's NSM API.
 * The message does not repeat a name outside that list: it could be anything.
 */
export function refusal(operation: string, name: string): NsmError {
  const code = REFUSALS.get(name);
  return code === undefined
    ? unusableAnswer(`an unknown error name in answer to ${operation}`)
    : new NsmError(code, `The NSM refused ${operation}: ${name}.`);
}
