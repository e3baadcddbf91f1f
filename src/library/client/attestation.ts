import { bytesToHex } from '@noble/curves/utils.js';
import type { VerifiedAttestation } from '../attestation/index.ts';
import { readAttestation } from './answer.ts';
import { ClientError } from './errors.ts';
import { type Http, requestJson } from './http.ts';

const NONCE_SIZE = 32;
const ED25519_KEY_SIZE = 32;

/**
 * Fetches an enclave's attestation document, which is not verified yet. Returns it with the fresh random
 * nonce that it must contain.
 *
 * @throws ClientError
 */
export async function fetchAttestation(http: Http): Promise<{ document: Uint8Array; nonce: Uint8Array }> {
  const nonce = globalThis.crypto.getRandomValues(new Uint8Array(NONCE_SIZE));
  const { json } = await requestJson(http, `get_attestation?nonce=${bytesToHex(nonce)}`);
  return { document: readAttestation(json), nonce };
}

/**
 * Returns the ed25519 key that a verified document binds.
 *
 * @throws ClientError: CLIENT_ATTESTED_KEY
 */
export function getAttestedKey({ document: { publicKey } }: VerifiedAttestation): Uint8Array {
  if (publicKey?.length !== ED25519_KEY_SIZE) {
    const message = 'the attestation document does not bind an ed25519 public key of 32 bytes';
    throw new ClientError('CLIENT_ATTESTED_KEY', message);
  }
  return publicKey;
}
