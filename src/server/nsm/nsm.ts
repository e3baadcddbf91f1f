import { unusableAnswer } from './errors.ts';
import {
  type AttestationRequest,
  attestation,
  describeNsm,
  describePcr,
  extendPcr,
  getRandom,
  lockPcr,
  lockPcrs,
  type NsmDescription,
  type PcrDescription,
} from './messages.ts';
import type { NsmTransport } from './transport.ts';

/**
 * The operations of a Nitro Security Module.
 *
 * Every method throws an `NsmError`: `NSM_INPUT` before anything is sent, the transport's codes if there is
 * no answer, `NSM_PROTOCOL` if the answer cannot be used, and one code for each error name of the NSM if the
 * NSM refuses.
 *
 * The driver does not track which answer belongs to which request: after a call that the kernel gave up on
 * (`ETIMEDOUT`), the call's late answer can be mistaken for the answer to the next call. This class
 * therefore rejects an answer to another operation, and a document without the requested fields.
 */
export class Nsm {
  readonly #transport: NsmTransport;

  constructor(transport: NsmTransport) {
    this.#transport = transport;
  }

  /** @returns the COSE_Sign1 attestation document, unverified except that it contains the requested fields */
  async attestation(request: AttestationRequest): Promise<Uint8Array> {
    const document = attestation.decode(await this.#transport.transact(attestation.encode(request)));
    const { publicKey, nonce, userData } = request;
    for (const field of [publicKey, nonce, userData]) {
      if (field && !Buffer.from(document).includes(Buffer.from(field))) {
        throw unusableAnswer('Attestation was answered with the document of another request');
      }
    }
    return document;
  }

  /** @returns 1 to 256 bytes of entropy; every known NSM returns 256, but callers must check the length */
  async getRandom(): Promise<Uint8Array> {
    return getRandom.decode(await this.#transport.transact(getRandom.encode()));
  }

  async describeNsm(): Promise<NsmDescription> {
    return describeNsm.decode(await this.#transport.transact(describeNsm.encode()));
  }

  /** @param index 0 to 31 */
  async describePcr(index: number): Promise<PcrDescription> {
    return describePcr.decode(await this.#transport.transact(describePcr.encode(index)));
  }

  /**
   * Replaces the register by the hash of its value followed by the data.
   *
   * @param index 0 to 31; the registers 0 to 15 are locked from the start (`NSM_READ_ONLY_INDEX`)
   * @param data at least 1 byte; the encoded request must fit into 0x1000 bytes
   * @returns the new value, 32, 48 or 64 bytes
   */
  async extendPcr(index: number, data: Uint8Array): Promise<Uint8Array> {
    return extendPcr.decode(await this.#transport.transact(extendPcr.encode(index, data)));
  }

  /**
   * Makes one register read-only until the enclave ends.
   *
   * @param index 0 to 31; `NSM_READ_ONLY_INDEX` if it is already locked
   */
  async lockPcr(index: number): Promise<void> {
    lockPcr.decode(await this.#transport.transact(lockPcr.encode(index)));
  }

  /**
   * Makes the registers 0 to `range` - 1 read-only until the enclave ends.
   *
   * @param range 1 to 32
   */
  async lockPcrs(range: number): Promise<void> {
    lockPcrs.decode(await this.#transport.transact(lockPcrs.encode(range)));
  }

  close(): void {
    this.#transport.close();
  }
}
