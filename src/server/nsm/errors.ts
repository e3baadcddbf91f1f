import { quantity } from 'sui-enclave/wording';
import { type ErrorTable, errorClass } from 'sui-enclave-service/errors';

/** Returns the entry of an error. Whatever has failed, the server can't answer now, so the status is 503. */
const cannotAnswer = (meaning: string) => ({ status: 503, meaning }) as const;

/**
 * Everything that can go wrong between a caller and the NSM. The last eight are the NSM's own `ErrorCode`s.
 */
export const NSM_ERRORS = {
  NSM_UNAVAILABLE: cannotAnswer(
    'there is no NSM driver, since the native addon or the device is missing: expected outside an enclave',
  ),
  NSM_IO: cannotAnswer('the NSM failed: the kernel refused an open or an ioctl'),
  NSM_TIMEOUT: cannotAnswer(
    'the NSM was too slow: the request may still take effect, so after an ExtendPCR or LockPCR the state of the register is unknown',
  ),
  NSM_BUSY: cannotAnswer(
    'the NSM is busy, since it answers one call at a time: the request was not sent (see `Retry-After`)',
  ),
  NSM_CLOSED: cannotAnswer('the device was closed before the call was answered'),
  NSM_PROTOCOL: cannotAnswer("the answer violates the NSM's interface"),
  NSM_INPUT: cannotAnswer('an argument is of the wrong type or out of bounds: nothing was sent to the NSM'),
  NSM_INVALID_ARGUMENT: cannotAnswer('`InvalidArgument`, an argument is invalid'),
  NSM_INVALID_INDEX: cannotAnswer('`InvalidIndex`, the PCR does not exist'),
  NSM_INVALID_RESPONSE: cannotAnswer(
    "`InvalidResponse`, the NSM's own answer does not belong to the request",
  ),
  NSM_READ_ONLY_INDEX: cannotAnswer('`ReadOnlyIndex`, the PCR is locked'),
  NSM_INVALID_OPERATION: cannotAnswer('`InvalidOperation`, the operation is unknown or not allowed'),
  NSM_BUFFER_TOO_SMALL: cannotAnswer('`BufferTooSmall`, the answer does not fit'),
  NSM_INPUT_TOO_LARGE: cannotAnswer('`InputTooLarge`, the request or one of its fields is too large'),
  NSM_INTERNAL_ERROR: cannotAnswer('`InternalError`, the NSM itself failed'),
} as const satisfies ErrorTable;

export type NsmCode = keyof typeof NSM_ERRORS;

/** An error of the NSM. No message contains bytes of a request or an answer. */
export class NsmError extends errorClass(NSM_ERRORS) {}

/** The kernel refused an `open` or an `ioctl`. */
export class NsmIo extends NsmError {
  /** Name of the error number, for example `EIO`; the decimal number itself if it has no name. */
  readonly errno: string;
  readonly syscall: 'open' | 'ioctl';

  constructor(syscall: 'open' | 'ioctl', errno: string, options?: ErrorOptions) {
    super('NSM_IO', `The NSM device failed: ${syscall} returned ${errno}.`, options);
    this.errno = errno;
    this.syscall = syscall;
  }
}

/** Too many calls wait for the NSM, which answers one at a time. The request was not sent. */
export class NsmBusy extends NsmError {
  constructor(waiting: number, retryAfterSeconds = 1) {
    super('NSM_BUSY', `The NSM is busy, with ${quantity(waiting, 'call')} in its queue.`, {
      retryAfterSeconds,
    });
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
  return new NsmError('NSM_PROTOCOL', `The NSM returned an answer that cannot be used: ${reason}.`, options);
}

export function badArgument(reason: string): NsmError {
  return new NsmError('NSM_INPUT', `An argument for the NSM is invalid: ${reason}.`);
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
 * Returns the error for the answer `{"Error": name}` to `operation`. The names are those of `ErrorCode` in
 * AWS's NSM API. The message does not repeat any other name, which could be anything.
 */
export function refusal(operation: string, name: string): NsmError {
  const code = REFUSALS.get(name);
  return code === undefined
    ? unusableAnswer(`an unknown error name in answer to ${operation}`)
    : new NsmError(code, `The NSM refused ${operation}: ${name}.`);
}
