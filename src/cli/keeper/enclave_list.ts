/**
 * Reads the enclaves of a config as one node shows them. A list contains every registration ever made, so it
 * is read in full only if there may be new registrations. Each registration writes the config, whose object
 * then has another version.
 */
import type { SuiGrpcClient } from '@mysten/sui/grpc';
import { ObjectNotFoundError } from 'sui-enclave/sui/errors';
import { toSuiError } from 'sui-enclave/sui/failures';
import { type Enclave, type EnclaveConfig, listEnclaves } from 'sui-enclave/sui/objects';
import { fromNode } from '../sui/chain.ts';
import type { ChainState } from './decide.ts';

/**
 * Time in milliseconds after which a list is read in full even if the version is the same, since a node may
 * have left something out.
 */
const MAX_AGE_MS = 60 * 60_000;

/** The result of the last read. */
interface LastRead {
  readonly configVersion: string;
  readonly readAt: number;
  /**
   * Whether the config had this version in the round before, too: a node's lists may lag behind its objects.
   */
  readonly isSettled: boolean;
  readonly enclaves: readonly Enclave[];
  readonly destroyed: readonly string[];
}

export class EnclaveList {
  readonly #clock: () => number;
  #last: LastRead | undefined;

  /** @param clock monotonic, in milliseconds */
  constructor(clock = () => performance.now()) {
    this.#clock = clock;
  }

  /** Makes the next read request the full list. */
  forget(): void {
    this.#last = undefined;
  }

  /**
   * Reads the enclaves of the config.
   *
   * @param version version of the config's object, read before `config`
   * @throws SuiError. The next read then requests the full list
   */
  async read(
    client: SuiGrpcClient,
    config: EnclaveConfig,
    version: string,
    signal: AbortSignal,
  ): Promise<Pick<ChainState, 'enclaves' | 'destroyed'>> {
    const last = this.#last;
    this.forget();
    // Lists without a version can't be compared.
    const isSame = /^\d+$/.test(version) && last?.configVersion === version;
    const isFresh = last !== undefined && this.#clock() - last.readAt < MAX_AGE_MS;
    if (last && isSame && isFresh && last.isSettled) {
      const missing = await listMissing(client, last, signal);
      // The next list shows whether the enclave was destroyed, or the node lags.
      if (missing.size === 0) this.#last = last;
      return {
        enclaves: last.enclaves.filter(({ id }) => !missing.has(id)),
        destroyed: [...last.destroyed, ...missing],
      };
    }
    const readAt = this.#clock();
    const { enclaves, destroyed } = await listEnclaves(client, config, { signal });
    this.#last = { configVersion: version, readAt, isSettled: isSame, enclaves, destroyed };
    return { enclaves, destroyed };
  }
}

/** Returns the ids of enclaves that no longer exist. An enclave changes in no other way. */
async function listMissing(
  client: SuiGrpcClient,
  { enclaves }: LastRead,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (enclaves.length === 0) return new Set();
  const objectIds = enclaves.map(({ id }) => id);
  const { objects } = await fromNode(client.core.getObjects({ objectIds, signal }));
  return new Set(objectIds.filter((_, index) => isMissing(objects[index])));
}

/** @throws SuiError for an object about which the node says nothing */
function isMissing(object: unknown): boolean {
  if (!(object instanceof Error)) return false;
  const error = toSuiError(object);
  if (error instanceof ObjectNotFoundError) return true;
  throw error;
}
