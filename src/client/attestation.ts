import { bytesToHex } from '@noble/curves/utils.js';
import { readAttestation } from './answer.ts';
import { type Http, requestJson } from './http.ts';

const NONCE_SIZE = 32;

/**
 * An enclave's attestation document, not verified yet, and the fresh random nonce that it must hold.
 *
 * @throws ClientError
 */
export async function fetchAttestation(http: Http): Promise<{ document: Uint8Array; nonce: Uint8Array }> {
  const nonce = globalThis.crypto.getRandomValues(new Uint8Array(NONCE_SIZE));
  const answer = await requestJson(http, `get_attestation?nonce=${bytesToHex(nonce)}`);
  return { document: readAttestation(answer), nonce };
}
