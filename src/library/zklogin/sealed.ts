/**
 * Sends sealed requests to a service in an enclave. A refusal or a failed connection has the same error as
 * with a service outside enclaves.
 */
import { EnclaveClient } from '../client/client.ts';
import { EnclaveRefusedError, EnclaveUnreachableError } from '../client/errors.ts';
import type { EnclaveClientOptions } from '../client/options.ts';
import { ServiceRefusedError, ServiceUnreachableError, ZkLoginError } from './errors.ts';
import type { ServiceOptions } from './http.ts';

export interface SealedOptions extends ServiceOptions {
  readonly policy: EnclaveClientOptions['policy'];
  readonly roots: EnclaveClientOptions['roots'];
  readonly timeoutMs: number;
}

/**
 * Sends a sealed request to an enclave.
 *
 * @param service name of the service, for messages
 * @param path the endpoint's path within the enclave
 * @returns the JSON that the enclave sealed
 * @throws ZkLoginError; ClientError and AttestationError if the service or its answer can't be trusted
 */
export async function askSealed(
  service: string,
  base: URL,
  path: string,
  body: object,
  { policy, roots, timeoutMs, fetch, headers, signal }: SealedOptions,
): Promise<unknown> {
  if (headers !== undefined) {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'headers are not sealed: leave them out if there is a policy');
  }
  const client = new EnclaveClient(base, {
    policy,
    timeoutMs,
    sealed: true,
    ...(roots && { roots }),
    ...(fetch && { fetch }),
  });
  try {
    return await client.ask(path, body, { ...(signal && { signal }) });
  } catch (error) {
    if (error instanceof EnclaveUnreachableError) {
      if (error.reason !== 'timeout') throw new ServiceUnreachableError(service, error.reason);
      throw new ZkLoginError('ZKLOGIN_TIMEOUT', `the ${service} did not answer within ${timeoutMs} ms`);
    }
    if (error instanceof EnclaveRefusedError) {
      throw new ServiceRefusedError(service, error);
    }
    throw error;
  }
}
