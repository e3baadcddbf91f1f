import { decode } from 'cborg';
import { NsmBusy, unusableAnswer } from './errors.ts';
import type { Nsm } from './nsm.ts';

/** Time for which one document serves all callers without a nonce, in milliseconds. */
const SHARED_MS = 5000;
/** Maximum number of callers that wait for a document with their own nonce. */
const MAX_WAITING = 256;
/** Longest wait of a caller, in milliseconds. The wait is estimated from how long recent documents took. */
const MAX_WAIT_MS = 8000;

interface Waiting {
  /** Up to 512 bytes; null in the shared document. */
  readonly nonce: Uint8Array | null;
  /** Owner of this place in the queue; null for the server itself. */
  readonly owner: object | null;
  resolve(document: Uint8Array): void;
  reject(error: unknown): void;
}

/**
 * Requests the attestation documents of one public key and its user data, one at a time, since an NSM takes
 * tens of milliseconds for each and anyone may ask. Callers without a nonce share a document. Callers with a
 * nonce wait in a queue, in which each owner (a connection) has at most one place.
 */
export class Documents {
  readonly #nsm: Nsm;
  readonly #fields: { readonly publicKey: Uint8Array; readonly userData: Uint8Array };
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  readonly #owners = new Set<object>();
  #working = false;
  /** Duration of one document, in milliseconds: a moving average. */
  #takesMs = 0;
  #shared: { readonly document: Promise<Uint8Array>; madeAt: number } | undefined;

  /** @param now a monotonic clock in milliseconds */
  constructor(
    nsm: Nsm,
    fields: { readonly publicKey: Uint8Array; readonly userData: Uint8Array },
    now: () => number = () => performance.now(),
  ) {
    this.#nsm = nsm;
    this.#fields = fields;
    this.#now = now;
  }

  /** Returns a document without a nonce, at most 5 seconds old. @throws NsmError */
  shared(): Promise<Uint8Array> {
    const current = this.#shared;
    if (current && this.#now() - current.madeAt < SHARED_MS) return current.document;
    // A document that is still being made counts as new.
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

  /** Returns a document with this nonce, ahead of the queue. For the server itself. @throws NsmError */
  urgent(nonce: Uint8Array): Promise<Uint8Array> {
    return this.#next(nonce);
  }

  /**
   * Returns a document with this nonce, when it is the owner's turn.
   *
   * @param leaving signal that is aborted when the owner leaves, and thus gives up its place
   * @throws NsmBusy if the owner already waits, or if too many other owners wait; any other NsmError
   */
  async fresh(nonce: Uint8Array, owner: object, leaving: AbortSignal): Promise<Uint8Array> {
    const waiting = this.#waiting.length;
    const waitMs = (waiting + 1) * this.#takesMs;
    if (waiting >= MAX_WAITING || waitMs > MAX_WAIT_MS || this.#owners.has(owner)) {
      throw new NsmBusy(waiting, Math.max(1, Math.ceil(waitMs / 1000)));
    }
    this.#owners.add(owner);
    try {
      return await new Promise((resolve, reject) => {
        const place = { nonce, owner, resolve, reject };
        this.#waiting.push(place);
        leaving.addEventListener('abort', () => this.#leave(place), { once: true });
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
        next.resolve(await this.#nsm.attestation({ ...this.#fields, nonce }));
      } catch (error) {
        next.reject(error);
      }
      this.#takesMs += (this.#now() - start - this.#takesMs) / 8;
    }
    this.#working = false;
  }
}

/**
 * Reads the time at which the NSM made a document, in milliseconds since the Unix epoch. The signature is not
 * verified: inside the enclave, the document is trusted because it was read from the device.
 *
 * @throws NSM_PROTOCOL
 */
export function readTimestamp(document: Uint8Array): number {
  let timestamp: unknown;
  try {
    // COSE_Sign1 (RFC 9052, section 4.2), tagged or untagged.
    const cose: unknown[] = decode(document, { tags: { 18: (content) => content() } });
    const payload: Map<unknown, unknown> = decode(cose[2] as Uint8Array, { useMaps: true });
    timestamp = payload.get('timestamp');
  } catch (cause) {
    throw unusableAnswer('the document cannot be read', { cause });
  }
  if (!Number.isSafeInteger(timestamp) || (timestamp as number) < 0) {
    throw unusableAnswer('the document has no timestamp');
  }
  return timestamp as number;
}
