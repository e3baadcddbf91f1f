/** Reads from the chain whether contracts accept the key of an enclave of this host. */
import { fetchAttestation } from 'sui-enclave/client/attestation';
import { isEnclaveError } from 'sui-enclave/errors';
import {
  acceptedImages,
  type EnclaveConfig,
  findRegistration,
  isKeyTooOld,
  isStale,
  readConfig,
  readEnclave,
} from 'sui-enclave/sui/objects';
import type { Environment } from '../command.ts';
import { PROGRAM } from '../places.ts';
import { readAttestedKey } from '../sui/attest.ts';
import { Chain } from '../sui/chain.ts';
import { enclaveAt, readRoots } from '../sui/contract.ts';
import { Deployments } from '../sui/deployments.ts';
import type { Network } from '../sui/network.ts';
import { adviseReplacement } from './enclave_faults.ts';
import type { EnclaveState } from './enclave_state.ts';
import { formatUrl } from './expose.ts';
import type { HostFault } from './host_faults.ts';

export interface ChainOptions {
  readonly network: Network;
  readonly app?: string | undefined;
  readonly 'rpc-url'?: string | undefined;
  readonly root?: string | undefined;
}

/** State of an enclave's registration: a line for people, and the fault, if there is one. */
export interface Registration {
  readonly text: string;
  readonly fault: HostFault | undefined;
}

/** Reads registrations under the config that the deployment file of a network names. */
export class Registrations {
  readonly #options: ChainOptions;
  readonly #chain: Chain;
  readonly #deployments: Deployments;

  constructor(options: ChainOptions, env: Environment) {
    this.#options = options;
    this.#chain = new Chain(options, env);
    this.#deployments = new Deployments(options.network, env, options.app);
  }

  /**
   * Attests the enclave at its port of this host, and reads the registration of its key. A fault of the
   * chain is returned and not thrown, since it must not hide the faults of the host.
   */
  async read(state: Pick<EnclaveState, 'name' | 'unit' | 'listen'>): Promise<Registration> {
    let config: EnclaveConfig;
    try {
      config = await this.#readConfig();
    } catch (error) {
      return toFault(
        'CHAIN_UNREADABLE',
        error,
        `correct what the error names, and run host_status again: ${HARMLESS}`,
      );
    }
    if (config.isRetired) {
      const text = `the config ${config.id} is retired`;
      const advice = `run ${PROGRAM} create_config, and register the enclave under the new config: ${HARMLESS}`;
      return { text, fault: { code: 'CONFIG_RETIRED', text, advice } };
    }
    let publicKey: Uint8Array;
    try {
      publicKey = await this.#attest(config, formatUrl(state.listen));
    } catch (error) {
      const advice = `if the enclave's application is not ${JSON.stringify(config.name)}, pass the application's name as --app. Otherwise the config must accept its image first: run ${PROGRAM} update_pcrs, which ends no enclave, or rollout, which ends the old enclaves`;
      return toFault('ATTESTATION_REFUSED', error, advice);
    }
    try {
      return await this.#judge(state, config, publicKey);
    } catch (error) {
      return toFault('CHAIN_UNREADABLE', error, `run host_status again: ${HARMLESS}`);
    }
  }

  async #readConfig(): Promise<EnclaveConfig> {
    const { configId } = this.#deployments.fill(['configId']);
    await this.#deployments.checkChain(this.#chain);
    return await readConfig(this.#chain.client, configId ?? '');
  }

  async #attest(config: EnclaveConfig, url: string): Promise<Uint8Array> {
    const now = Date.now();
    const roots = await readRoots(this.#chain, this.#options.root);
    const images = acceptedImages(config, now);
    const expected = { images, roots, configId: config.id, deployments: this.#deployments };
    return await readAttestedKey({ ...(await fetchAttestation(enclaveAt(url))), now }, expected);
  }

  async #judge(
    { unit }: Pick<EnclaveState, 'unit'>,
    config: EnclaveConfig,
    publicKey: Uint8Array,
  ): Promise<Registration> {
    const { client } = this.#chain;
    const key = `the key ${Buffer.from(publicKey).toString('hex').slice(0, 16)}…`;
    const { enclaveId, state } = await findRegistration(client, config, publicKey);
    if (state === 'free') {
      const text = `${key} is not registered under the config ${JSON.stringify(config.name)}`;
      const advice = `run ${PROGRAM} register_enclave <its URL> --network ${this.#options.network} with a registrar's key, or find out why the keeper does not register it: ${HARMLESS}`;
      return { text, fault: { code: 'UNREGISTERED', text, advice } };
    }
    if (state === 'destroyed') {
      const text = `the registration of ${key} was destroyed`;
      return { text, fault: { code: 'KEY_DESTROYED', text, advice: adviseReplacement({ unit }) } };
    }
    const now = Date.now();
    const enclave = await readEnclave(client, enclaveId);
    if (isKeyTooOld(enclave, config, now)) {
      const text = `${key} is older than the config allows`;
      return { text, fault: { code: 'KEY_TOO_OLD', text, advice: adviseReplacement({ unit }) } };
    }
    const staleness = isStale(enclave, config, now) ? ', but stale' : '';
    return { text: `${key} is registered as ${enclaveId}${staleness}`, fault: undefined };
  }
}

const HARMLESS = 'this ends no enclave';

/** Converts an error of a known cause into a fault. Throws any other error again. */
function toFault(
  code: 'CHAIN_UNREADABLE' | 'ATTESTATION_REFUSED',
  error: unknown,
  advice: string,
): Registration {
  if (!isEnclaveError(error)) throw error;
  const text = `${error.code}: ${error.message.split('\n')[0]}`;
  return { text, fault: { code, text, advice } };
}
