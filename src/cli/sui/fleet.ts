/** Attests the enclaves that answer at URLs, and looks up whether their keys are registered. */

import { toHex } from '@mysten/sui/utils';
import { AttestationError } from 'sui-enclave/attestation';
import { fetchAttestation } from 'sui-enclave/client/attestation';
import { ClientError } from 'sui-enclave/client/errors';
import { type Enclave, type EnclaveConfig, findRegistration } from 'sui-enclave/sui/objects';
import { type Expected, readAttestedKey } from './attest.ts';
import type { Chain } from './chain.ts';
import { enclaveAt } from './contract.ts';

/** Key of an enclave that answered at a URL, or the reason why the answer is not trusted. */
export type UrlAttestation =
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
 * Attests the enclaves that answer at the URLs, and looks up the registration of each key.
 *
 * @param enclaves the enclaves that contracts accept. Their number determines how often each URL is asked,
 *   since all of them may answer at the same URL
 */
export async function attestUrls(
  urls: readonly string[],
  config: EnclaveConfig,
  enclaves: readonly Enclave[],
  chain: Chain,
  expected: Expected,
): Promise<UrlAttestation[]> {
  // A second request may reach another enclave, even if only one is expected.
  const requests = Math.min(MAX_REQUESTS, 2 * Math.max(1, enclaves.length));
  const attestationByKey = new Map<string, UrlAttestation>();
  for (const url of urls) {
    for (let request = 0; request < requests; request += 1) {
      const answer = await attest(url, config, chain, expected, urls.length === 1 && request === 0);
      const key = answer.trusted ? answer.publicKey : answer.code;
      attestationByKey.set(`${url} ${key}`, answer);
    }
  }
  return [...attestationByKey.values()];
}

/**
 * Attests the enclave that answers one request.
 *
 * @param isFirstAndOnly whether this is the first request, and to the only URL. If so, an enclave that can't
 *   be reached is an error, not an entry of the list
 */
async function attest(
  url: string,
  config: EnclaveConfig,
  chain: Chain,
  expected: Expected,
  isFirstAndOnly: boolean,
): Promise<UrlAttestation> {
  const isVerdict = (error: unknown): error is AttestationError | ClientError =>
    error instanceof AttestationError ||
    (error instanceof ClientError && (!isFirstAndOnly || error.code === 'CLIENT_ATTESTED_KEY'));
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
