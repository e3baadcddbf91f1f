import { createRequire } from 'node:module';
import { isAbsolute } from 'node:path';
import { badArgument, NsmBusy, NsmError, NsmIo, unavailable, unusableAnswer } from './errors.ts';
import { MAX_REQUEST_BYTES } from './messages.ts';
import type { NsmTransport } from './transport.ts';

const DEFAULT_PATH = '/dev/nsm';
const DEFAULT_DEADLINE_MS = 5_000;
const DEFAULT_MAX_WAITING = 128;
/** Maximum deadline in milliseconds, since Node fires a longer timer immediately. */
const MAX_DEADLINE_MS = 0x7fff_ffff;

export interface NsmDeviceOptions {
  /** Device node; default `/dev/nsm`. */
  path?: string;
  /** Absolute path of the native addon. */
  addonPath: string;
  /** Time limit of a call, including the wait in the queue, in milliseconds. Default: 5000. */
  deadlineMs?: number;
  /** Maximum number of calls that wait while one is in flight. Default: 128. */
  maxWaiting?: number;
}

/** The exports of `addon.cc`. */
interface Addon {
  Device: new (path: string) => Handle;
}

interface Handle {
  transact(request: Uint8Array): Promise<Uint8Array>;
  close(): void;
}

interface Call {
  request: Uint8Array;
  timer: NodeJS.Timeout;
  resolve(answer: Uint8Array): void;
  reject(error: unknown): void;
}

/**
 * The NSM's device node, through the Linux driver (`linux/nsm.h`, kernel 6.8 and later).
 *
 * Calls are sent one at a time, in the order in which they were made. The first call opens the descriptor,
 * and so does the first call after a failed one. The driver can block a call for up to two minutes, and
 * nothing can cancel the call. Its caller gets `NSM_TIMEOUT` at the deadline. The calls that wait behind it
 * can time out too. The device continues with the next call when the driver returns. Until then,
 * `process.exit()` blocks too.
 */
export class NsmDevice implements NsmTransport {
  readonly #path: string;
  readonly #addonPath: string;
  readonly #deadlineMs: number;
  readonly #maxWaiting: number;
  readonly #waiting: Call[] = [];
  #inFlight: Call | undefined;
  #handle: Handle | undefined;
  #closed = false;

  /** Stores the options; the first call opens the device. @throws NSM_INPUT if an option is out of bounds */
  constructor(options: NsmDeviceOptions) {
    this.#path = options.path ?? DEFAULT_PATH;
    this.#addonPath = options.addonPath;
    if (!isAbsolute(this.#addonPath)) {
      throw badArgument('addonPath must be an absolute path');
    }
    this.#deadlineMs = integer('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS, 1, MAX_DEADLINE_MS);
    this.#maxWaiting = integer(
      'maxWaiting',
      options.maxWaiting ?? DEFAULT_MAX_WAITING,
      0,
      Number.MAX_SAFE_INTEGER,
    );
  }

  /**
   * @param request 1 to 0x1000 bytes; copied, so that the caller may reuse the array immediately
   * @returns at most 0x3000 bytes
   * @throws NSM_INPUT, NSM_CLOSED and NSM_BUSY before anything is sent; NSM_UNAVAILABLE if the addon or the
   *   device node is missing; NSM_IO if the kernel refuses; NSM_TIMEOUT; NSM_PROTOCOL if the driver reports
   *   an impossible length
   */
  async transact(request: Uint8Array): Promise<Uint8Array> {
    if (!(request instanceof Uint8Array) || request.length < 1 || request.length > MAX_REQUEST_BYTES) {
      throw badArgument(`a request must be 1 to ${MAX_REQUEST_BYTES} bytes`);
    }
    if (this.#closed) {
      throw closed();
    }
    if (this.#inFlight && this.#waiting.length >= this.#maxWaiting) {
      throw new NsmBusy(this.#waiting.length);
    }
    return new Promise((resolve, reject) => {
      const call: Call = {
        request: Uint8Array.from(request),
        timer: setTimeout(() => this.#expire(call), this.#deadlineMs),
        resolve,
        reject,
      };
      this.#waiting.push(call);
      this.#sendNext();
    });
  }

  /**
   * Rejects unanswered calls with `NSM_CLOSED`. The descriptor is released now, or when the call in flight
   * returns. The device can't be opened again.
   */
  close(): void {
    this.#closed = true;
    this.#release();
    for (const call of [this.#inFlight, ...this.#waiting.splice(0)]) {
      if (call) {
        clearTimeout(call.timer);
        call.reject(closed());
      }
    }
  }

  #expire(call: Call): void {
    const at = this.#waiting.indexOf(call);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
    }
    call.reject(new NsmError('NSM_TIMEOUT', `The NSM did not answer within ${this.#deadlineMs} ms.`));
  }

  #sendNext(): void {
    if (this.#inFlight) {
      return;
    }
    this.#inFlight = this.#waiting.shift();
    if (this.#inFlight) {
      void this.#send(this.#inFlight);
    }
  }

  /**
   * Sends a call. If the call has timed out or was closed, it is settled already, and settling it again has
   * no effect.
   */
  async #send(call: Call): Promise<void> {
    try {
      this.#handle ??= this.#open();
      call.resolve(await this.#handle.transact(call.request));
    } catch (error) {
      this.#release();
      call.reject(toNsmError(error));
    } finally {
      clearTimeout(call.timer);
      this.#inFlight = undefined;
      this.#sendNext();
    }
  }

  #open(): Handle {
    let addon: Addon;
    try {
      addon = createRequire(import.meta.url)(this.#addonPath);
    } catch (cause) {
      throw unavailable('the native addon cannot be loaded', { cause });
    }
    try {
      return new addon.Device(this.#path);
    } catch (cause) {
      const code = errorCode(cause);
      if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENXIO') {
        throw unavailable(`the device ${this.#path} does not exist`, { cause });
      }
      throw cause;
    }
  }

  #release(): void {
    this.#handle?.close();
    this.#handle = undefined;
  }
}

/**
 * Turns the errors that the addon documents into `NsmError`s. Any other error is a bug of this server, and is
 * returned unchanged.
 */
function toNsmError(error: unknown): unknown {
  const code = errorCode(error);
  const syscall = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  if (code === 'ERR_NSM_LENGTH') {
    return unusableAnswer('the driver reported more bytes than the buffer holds', { cause: error });
  }
  if (code !== undefined && (syscall === 'open' || syscall === 'ioctl')) {
    return new NsmIo(syscall, code, { cause: error });
  }
  return error;
}

function closed(): NsmError {
  return new NsmError('NSM_CLOSED', 'The NSM device was closed.');
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function integer(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw badArgument(`${name} must be an integer from ${min} to ${max}`);
  }
  return value;
}
