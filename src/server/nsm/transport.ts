/**
 * Exchanges messages with a Nitro Security Module: takes the bytes of a CBOR request, and returns the bytes
 * of its CBOR answer.
 *
 * `NsmDevice` is the transport to a real NSM. Development and tests use others. A transport does not
 * interpret CBOR: `messages.ts` encodes the requests and checks the answers.
 */
export interface NsmTransport {
  /**
   * @param request one CBOR data item, 1 to 0x1000 bytes
   * @returns one CBOR data item, at most 0x3000 bytes
   * @throws NsmError if there was no answer
   */
  transact(request: Uint8Array): Promise<Uint8Array>;

  /** Releases the device, and rejects unanswered calls. May be called more than once. */
  close(): void;
}
