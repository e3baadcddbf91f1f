/**
 * Trusts exactly what an EnclaveConfig on Sui trusts. Only `EnclaveClient.forConfig` loads this module, and
 * with it `@mysten/sui`.
 */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { bytesToHex } from '@noble/curves/utils.js';
import { checkPolicy } from '../attestation/policy.ts';
import {
  acceptedImages,
  type EnclaveConfig,
  findRegistration,
  isKeyTooOld,
  isOverlapping,
  readConfig,
  readEnclave,
} from '../sui/objects.ts';
import { NotRegisteredError } from './errors.ts';
import { invalidOption } from './http.ts';
import { type ConfigClientOptions, checkDuration, readCallOptions } from './options.ts';
import type { Requirements, Trust } from './trust.ts';

const MINUTE = 60_000;

/**
 * Checks the options of `EnclaveClient.forConfig`.
 *
 * @param configOptions as for `EnclaveClient.forConfig`
 * @returns the trust in the config, and the options of the client without a policy, which comes from the
 *   chain
 * @throws ClientError: CLIENT_OPTION
 */
export function trustInConfig(
  suiClient: ClientWithCoreApi,
  configId: string,
  configOptions: ConfigClientOptions,
) {
  if (typeof configOptions !== 'object' || configOptions === null)
    throw invalidOption('the options must be an object');
  const { configMaxAgeMs = MINUTE, signal, ...options } = configOptions;
  readCallOptions({ ...('signal' in configOptions && { signal }) } as object, ['signal']);
  if ('policy' in options) throw invalidOption('forConfig takes the policy from the chain: leave it out');
  const maxAgeMs = checkDuration('configMaxAgeMs', configMaxAgeMs);
  const trust: Trust = new ChainTrust(suiClient, configId, { maxAgeMs, now: options.now ?? Date.now });
  return { trust, options, signal };
}

/** A config at the time of a read, and the keys that were found to be registered under it. */
interface Snapshot {
  readonly config: EnclaveConfig;
  readonly requirements: Requirements;
  readonly at: number;
  /** Time at which an overlap ends, in milliseconds since 1970: the config must then be read again. */
  readonly endsAt: number;
  /** The id of the enclave, by its key in hex. */
  readonly registered: Map<string, string>;
}

/**
 * Trusts the image that the config names, the previous image as well during an overlap, and the keys that are
 * registered under the config. For a key that the client has not attested itself, registration is as good as
 * an attestation: the contract has verified a document of that key with these registers, and a key never
 * leaves its enclave. This requires no more trust in the node, since the registers come from the node too.
 */
class ChainTrust implements Trust {
  readonly #client: ClientWithCoreApi;
  readonly #configId: string;
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  #snapshot: Snapshot | undefined;
  #reading: Promise<Snapshot> | undefined;

  constructor(
    client: ClientWithCoreApi,
    configId: string,
    { maxAgeMs, now }: { maxAgeMs: number; now: () => number },
  ) {
    this.#client = client;
    this.#configId = configId;
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  async current(): Promise<Requirements> {
    return (await this.#latest()).requirements;
  }

  async renewed({ version }: Requirements): Promise<Requirements | null> {
    const { requirements } = await this.#read();
    return requirements.version > version ? requirements : null;
  }

  async vouchesFor(publicKey: Uint8Array): Promise<boolean> {
    return (await this.#findState(publicKey)).fault === undefined;
  }

  async admit(publicKey: Uint8Array): Promise<string> {
    const { enclaveId, fault } = await this.#findState(publicKey);
    if (fault !== undefined) throw new NotRegisteredError(fault, publicKey, this.#configId);
    return enclaveId;
  }

  async #findState(
    publicKey: Uint8Array,
  ): Promise<{ enclaveId: string; fault?: NotRegisteredError['reason'] }> {
    const { config, registered } = await this.#latest();
    const hex = bytesToHex(publicKey);
    const registeredId = registered.get(hex);
    if (registeredId !== undefined) return { enclaveId: registeredId };
    const { enclaveId, state } = await findRegistration(this.#client, config, publicKey, {
      nowMs: this.#now(),
    });
    if (state !== 'registered') return { enclaveId, fault: state === 'free' ? 'unregistered' : 'destroyed' };
    // The id is not cached if keys expire, since the key's age changes.
    if (config.maxKeyAgeMs === null) registered.set(hex, enclaveId);
    else if (isKeyTooOld(await readEnclave(this.#client, enclaveId), config, this.#now())) {
      return { enclaveId, fault: 'too old' };
    }
    return { enclaveId };
  }

  async #latest(): Promise<Snapshot> {
    const now = this.#now();
    const age = this.#snapshot === undefined ? -1 : now - this.#snapshot.at;
    const isFresh = age >= 0 && age <= this.#maxAgeMs;
    return this.#snapshot && isFresh && now < this.#snapshot.endsAt ? this.#snapshot : await this.#read();
  }

  /** Reads the config. Concurrent calls share one read. */
  async #read(): Promise<Snapshot> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return await this.#reading;
  }

  async #readOnce(): Promise<Snapshot> {
    const at = this.#now();
    const config = await readConfig(this.#client, this.#configId);
    if (config.isRetired) throw new NotRegisteredError('retired', null, this.#configId);
    const policy = checkPolicy({ images: acceptedImages(config, at) });
    const isInOverlap = isOverlapping(config, at);
    // The end of an overlap changes the policy too, but not the config's version.
    const version = 2n * config.configVersion + (isInOverlap ? 0n : 1n);
    this.#snapshot = {
      config,
      requirements: { policy, version },
      at,
      endsAt: isInOverlap ? Number(config.overlap?.untilMs) : Infinity,
      registered: new Map(),
    };
    return this.#snapshot;
  }
}
