/** Attests whatever answers at URLs, and compares the keys with those that are registered. */

import { toHex } from '@mysten/sui/utils';
import { AttestationError } from 'sui-enclave/attestation';
import { fetchAttestation } from 'sui-enclave/client/attestation';
import { ClientError } from 'sui-enclave/client/errors';
import { type Enclave, type EnclaveConfig, findRegistration } from 'sui-enclave/sui/objects';
import { type Expected, readAttestedKey } from './attest.ts';
import type { Chain } from './chain.ts';
import { enclaveAt } from './contract.ts';

/** A key that answered at a URL, or the reason why nothing there is trusted. */
export type Answering =
  | {
      readonly url: string;
      readonly trusted: true;
      readonly publicKey: string;
      readonly registration: 'registered' | 'not registered' | 'destroyed';
      /** The id of the key's enclave, whether it exists or not. */
      readonly enclave: string;
    }
  | { readonly url: string; readonly trusted: false; readonly code: string; readonly reason: string };

/** Maximum number of requests to one URL, at which several enclaves may answer by turns. */
const MAX_REQUESTS = 16;

/**
 * @param enclaves the enclaves that contracts accept. A URL has at most as many keys, unless some are unknown
 */
export async function answering(
  urls: readonly string[],
  config: EnclaveConfig,
  enclaves: readonly Enclave[],
  chain: Chain,
  expected: Expected,
): Promise<Answering[]> {
  // The second request shows whether there is more than one enclave.
  const requests = Math.min(MAX_REQUESTS, 2 * Math.max(1, enclaves.length));
  const answeringByKey = new Map<string, Answering>();
  for (const url of urls) {
    for (let request = 0; request < requests; request += 1) {
      const answer = await attest(url, config, chain, expected, urls.length === 1 && request === 0);
      const key = answer.trusted ? answer.publicKey : answer.code;
      answeringByKey.set(`${url} ${key}`, answer);
    }
  }
  return [...answeringByKey.values()];
}

/**
 * @param isOnly whether this is the only URL. If so, an enclave that can't be reached is an error, not an
 *   entry of a list
 */
async function attest(
  url: string,
  config: EnclaveConfig,
  chain: Chain,
  expected: Expected,
  isOnly: boolean,
): Promise<Answering> {
  const isVerdict = (error: unknown): error is AttestationError | ClientError =>
    error instanceof AttestationError ||
    (error instanceof ClientError && (!isOnly || error.code === 'CLIENT_ATTESTED_KEY'));
  let publicKey: Uint8Array;
  try {
    const attested = { ...(await fetchAttestation(enclaveAt(url))), now: Date.now() };
    publicKey = await readAttestedKey(attested, expected);
  } catch (error) {
    if (!isVerdict(error)) throw error;
    return { url, trusted: false, code: error.code, reason: error.message };
  }
  const { enclaveId, state } = await findRegistration(chain.client, config, publicKey);
  const registration = state === 'free' ? 'not registered' : state;
  return { url, trusted: true, publicKey: toHex(publicKey), registration, enclave: enclaveId };
}
