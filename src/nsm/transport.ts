/**
 * One exchange with a Nitro Secure Module: the bytes of one CBOR request in, the bytes of its CBOR answer out.
 *
 * `NsmDevice` is the real one; whatever can answer these bytes can stand in for it. A transport knows nothing
 * of CBOR: `messages.ts` makes the requests and checks the answers.
 */
export interface NsmTransport {
  /**
   * @param request one CBOR data item, 1 to 0x1000 bytes
   * @returns one CBOR data item, at most 0x3000 bytes
   * @throws NsmError when there was no answer
   */
  transact(request: Uint8Array): Promise<Uint8Array>;

  /** Gives up the device; calls that are not answered yet are rejected. May be called more than once. */
  close(): void;
}
