import { decode } from 'cborg';
import { NsmBusy, unusableAnswer } from './errors.ts';
import type { Nsm } from './nsm.ts';

/** For how long one document serves all callers that bring no nonce. */
const SHARED_MS = 5000;
/** Callers that may wait for a document of their own. */
const MAX_WAITING = 256;
/** The longest that a caller may expect to wait, judged by how long the last documents took. */
const MAX_WAIT_MS = 8000;

interface Waiting {
  /** Up to 512 bytes; null in the shared document. */
  readonly nonce: Uint8Array | null;
  /** Whose place it is; null where it is nobody's. */
  readonly owner: object | null;
  resolve(document: Uint8Array): void;
  reject(error: unknown): void;
}

/**
 * The attestation documents of one public key, made one at a time: an NSM takes tens of milliseconds for each,
 * and anybody may ask. Callers without a nonce share a document; those with one wait in a queue, each owner
 * (a connection) once.
 */
export class Documents {
  readonly #nsm: Nsm;
  readonly #publicKey: Uint8Array;
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  readonly #owners = new Set<object>();
  #working = false;
  /** Of one document, in milliseconds: a moving average. */
  #takesMs = 0;
  #shared: { readonly document: Promise<Uint8Array>; madeAt: number } | undefined;

  /** @param now a clock in milliseconds that only goes forward */
  constructor(nsm: Nsm, publicKey: Uint8Array, now: () => number = () => performance.now()) {
    this.#nsm = nsm;
    this.#publicKey = publicKey;
    this.#now = now;
  }

  /** A document without a nonce, at most 5 seconds old. @throws NsmError */
  shared(): Promise<Uint8Array> {
    const kept = this.#shared;
    if (kept && this.#now() - kept.madeAt < SHARED_MS) return kept.document;
    // Until it is made it counts as new.
    const shared = { document: this.#next(null), madeAt: Number.POSITIVE_INFINITY };
    this.#shared = shared;
    shared.document.then(
      () => {
        shared.madeAt = this.#now();
      },
      () => {
        this.#shared = undefined;
      },
    );
    return shared.document;
  }

  /** A document with this nonce, before all that wait. For the server itself. @throws NsmError */
  urgent(nonce: Uint8Array): Promise<Uint8Array> {
    return this.#next(nonce);
  }

  /**
   * A document with this nonce, when it is the owner's turn.
   *
   * @param left aborted when nobody wants the document any more: an owner that has left waits for nothing
   * @throws NsmBusy when the owner waits already or too many others do; any other NsmError
   */
  async fresh(nonce: Uint8Array, owner: object, left: AbortSignal): Promise<Uint8Array> {
    const waiting = this.#waiting.length;
    const waitMs = (waiting + 1) * this.#takesMs;
    if (waiting >= MAX_WAITING || waitMs > MAX_WAIT_MS || this.#owners.has(owner)) {
      throw new NsmBusy(waiting, Math.max(1, Math.ceil(waitMs / 1000)));
    }
    this.#owners.add(owner);
    try {
      return await new Promise((resolve, reject) => {
        const mine = { nonce, owner, resolve, reject };
        this.#waiting.push(mine);
        left.addEventListener('abort', () => this.#leave(mine), { once: true });
        void this.#work();
      });
    } finally {
      this.#owners.delete(owner);
    }
  }

  #next(nonce: Uint8Array | null): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.unshift({ nonce, owner: null, resolve, reject });
      void this.#work();
    });
  }

  #leave(waiting: Waiting): void {
    const at = this.#waiting.indexOf(waiting);
    if (at === -1) return;
    this.#waiting.splice(at, 1);
    waiting.reject(new NsmBusy(this.#waiting.length));
  }

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const start = this.#now();
      try {
        const { nonce } = next;
        next.resolve(await this.#nsm.attestation({ publicKey: this.#publicKey, nonce, userData: null }));
      } catch (error) {
        next.reject(error);
      }
      this.#takesMs += (this.#now() - start - this.#takesMs) / 8;
    }
    this.#working = false;
  }
}

/**
 * When the NSM made a document, in milliseconds since the Unix epoch. The signature is not verified: inside the
 * enclave, the device that it was read from is what vouches for it.
 *
 * @throws NSM_PROTOCOL
 */
export function timestampOf(document: Uint8Array): number {
  let timestamp: unknown;
  try {
    // COSE_Sign1 (RFC 9052, section 4.2), under its tag or not.
    const cose: unknown[] = decode(document, { tags: { 18: (content) => content() } });
    const payload: Map<unknown, unknown> = decode(cose[2] as Uint8Array, { useMaps: true });
    timestamp = payload.get('timestamp');
  } catch {
    throw unusableAnswer('the document cannot be read');
  }
  if (!Number.isSafeInteger(timestamp) || (timestamp as number) < 0) {
    throw unusableAnswer('the document has no time');
  }
  return timestamp as number;
}
