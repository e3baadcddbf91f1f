/**
 * Checks whether the contract accepts signatures of a key. An attested key is not enough: it must be
 * registered on Sui.
 */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useEffect, useState } from 'react';
import { findRegistration, isKeyTooOld, readConfig, readEnclave } from 'sui-enclave/sui';

/** The reason why the contract does not accept the key. */
export type Staleness = 'unregistered' | 'destroyed' | 'too old' | 'retired';

export type Registration =
  | { readonly state: 'checking' }
  | { readonly state: 'registered'; readonly enclaveId: string }
  | { readonly state: 'stale'; readonly why: Staleness }
  | { readonly state: 'failed'; readonly error: unknown };

/** @throws SuiError; the signal's reason */
async function readRegistration(
  client: ClientWithCoreApi,
  configId: string,
  publicKey: Uint8Array,
  signal: AbortSignal,
): Promise<Registration> {
  const config = await readConfig(client, configId, { signal });
  if (config.isRetired) return { state: 'stale', why: 'retired' };
  const { enclaveId, state } = await findRegistration(client, config, publicKey, { signal });
  if (state !== 'registered') {
    return { state: 'stale', why: state === 'destroyed' ? 'destroyed' : 'unregistered' };
  }
  const enclave = await readEnclave(client, enclaveId, { signal });
  if (isKeyTooOld(enclave, config, Date.now())) return { state: 'stale', why: 'too old' };
  return { state: 'registered', enclaveId };
}

/**
 * Asks the chain about a key, and asks again when `refresh` is called.
 *
 * @param publicKey undefined as long as no key is known
 */
export function useRegistration(
  client: ClientWithCoreApi,
  configId: string,
  publicKey: Uint8Array | undefined,
): Registration & { refresh(): void } {
  const [registration, setRegistration] = useState<Registration>({ state: 'checking' });
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another round repeats the same question
  useEffect(() => {
    if (publicKey === undefined) return;
    const controller = new AbortController();
    setRegistration({ state: 'checking' });
    readRegistration(client, configId, publicKey, controller.signal)
      .catch((error: unknown): Registration => ({ state: 'failed', error }))
      .then((registration) => {
        if (!controller.signal.aborted) setRegistration(registration);
      });
    return () => controller.abort();
  }, [client, configId, publicKey, round]);
  return { ...registration, refresh: () => setRound(round + 1) };
}
