/** Registers an attested key under a config: for register_enclave, and for rotate where the registers stay the same. */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Chain } from './chain.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';

export interface Applicant {
  readonly enclavePackage: string;
  readonly config: EnclaveConfig;
  readonly url: string;
  /** The document, and the key that it attests. */
  readonly document: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly deployments: Deployments | undefined;
}

/**
 * Sends nothing for a key that is registered.
 *
 * @param registrarId a RegistrarCap of the sender, in place of the config's capability
 * @throws SuiCommandError: WOULD_ABORT for a key that was destroyed; SuiError
 */
export async function register(
  chain: Chain,
  { enclavePackage, config, url, document, publicKey, deployments }: Applicant,
  registrarId?: string,
): Promise<Outcome> {
  const { Transaction } = await import('@mysten/sui/transactions');
  const { toHex } = await import('@mysten/sui/utils');
  const { findRegistration } = await import('sui-enclave/sui/objects');
  const { registerEnclave, registerEnclaveAsRegistrar } = await import('sui-enclave/sui/transactions');
  const { enclaveId, state } = await findRegistration(chain.client, config, publicKey);
  const { application, id: configId, capabilityId: capId, configVersion } = config;
  const fields = { enclave: enclaveId, publicKey: toHex(publicKey), config: configId, configVersion };
  if (state === 'registered') {
    return { status: 'unchanged', title: 'This enclave is registered already: nothing to do.', fields };
  }
  if (state === 'destroyed') {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `register_enclave would abort: the key ${fields.publicKey} was registered at version ${configVersion} and destroyed. Restart the enclave for a new key`,
    );
  }
  const tx = new Transaction();
  const call = { enclavePackage, application, configId, attestation: document };
  if (registrarId === undefined) registerEnclave(tx, { ...call, capId });
  else registerEnclaveAsRegistrar(tx, { ...call, registrarId });
  const outcome = await chain.submit(tx, {
    title: `register the enclave at ${url} for ${application}`,
    fields: {
      ...fields,
      ...(registrarId === undefined ? { capability: capId } : { registrar: registrarId }),
    },
  });
  await deployments?.noteEnclave(chain, outcome, config, { id: enclaveId, url });
  return outcome;
}
