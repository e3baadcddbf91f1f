/** An attested enclave as the state of a component. `AttestedEnclave` does the work, without React. */
import { useState, useSyncExternalStore } from 'react';
import type { EnclaveClient, RegisteredEnclaveClient } from '../client/client.ts';
import type { EnclaveClientOptions } from '../client/options.ts';
import { AttestedEnclave, type RegisteredEnclaveOptions, type UsedEnclave } from './attested_enclave.ts';

/**
 * Attests an enclave once, when the component is mounted, and returns a client for it. A later render
 * attests again only if `url` or the content of `options` has changed; functions in `options` are taken from
 * the first render. Requests under way are aborted when the component is unmounted.
 *
 * Use this hook once for an enclave, and pass its result on, since each component that uses the hook attests
 * the enclave by itself.
 *
 * Exported as `sui-enclave/react`.
 *
 * @param url as for `EnclaveClient`
 * @param options the options of `EnclaveClient`; or `suiClient` and `configId`, with the options of
 *   `EnclaveClient.forConfig`. Make `suiClient` outside the component, or keep it with `useMemo`: for another
 *   `suiClient`, the hook attests again
 * @returns the enclave's state. The hook never throws: a mistake in the options is an `error` too
 * @example
 * const enclave = useEnclave('https://weather.example', { policy: { images: [image] } });
 * if (enclave.status === 'attested') return <Weather client={enclave.client} />;
 */
export function useEnclave(
  url: string | URL,
  options: RegisteredEnclaveOptions,
): UsedEnclave<RegisteredEnclaveClient>;
export function useEnclave(url: string | URL, options: EnclaveClientOptions): UsedEnclave<EnclaveClient>;
export function useEnclave(
  url: string | URL,
  options: EnclaveClientOptions | RegisteredEnclaveOptions,
): UsedEnclave<EnclaveClient> {
  const address = String(url);
  const begin = () => ({ address, options, enclave: new AttestedEnclave(address, options) });
  const [instance, setInstance] = useState(begin);
  const isCurrent = instance.address === address && isSame(instance.options, options);
  const current = isCurrent ? instance : begin();
  // React renders again immediately, with the current enclave.
  if (!isCurrent) setInstance(current);
  const { subscribe, read } = current.enclave;
  return useSyncExternalStore(subscribe, read, read);
}

/**
 * Returns whether two options are equal. Functions are not compared: pages create them again in each render.
 */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || (typeof a === 'function' && typeof b === 'function')) return true;
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return a.length === b.length && a.every((byte, index) => byte === b[index]);
  }
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const entries = Object.entries(a);
  return (
    entries.length === Object.keys(b).length &&
    entries.every(([key, value]) => Object.hasOwn(b, key) && isSame(value, Reflect.get(b, key)))
  );
}

/**
 * Returns whether the value is a plain object or an array. Any other object, such as a client, has an
 * identity.
 */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}
