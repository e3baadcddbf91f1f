/**
 * The enclaves of a config as one node shows them. A list has every registration ever made, so it is read in full only
 * where there may be new ones: each registration writes the config, whose object then has another version.
 */
import type { SuiGrpcClient } from '@mysten/sui/grpc';
import { ObjectNotFoundError } from 'sui-enclave/sui/errors';
import { suiErrorOf } from 'sui-enclave/sui/failures';
import { type Enclave, type EnclaveConfig, listEnclaves } from 'sui-enclave/sui/objects';
import { fromNode } from '../sui/chain.ts';
import type { Registered } from './decide.ts';

/** A list is read again after this time, in milliseconds, whatever the version: a node may have left something out. */
const MAX_AGE_MS = 60 * 60_000;

interface Known {
  readonly configVersion: string;
  readonly readAt: number;
  /** Whether the config had this version in the round before, too: a node's lists may lag behind its objects. */
  readonly isSettled: boolean;
  readonly enclaves: readonly Enclave[];
  readonly destroyed: readonly string[];
}

export class EnclaveList {
  readonly #clock: () => number;
  #known: Known | undefined;

  /** @param clock monotonic, in milliseconds */
  constructor(clock = () => performance.now()) {
    this.#clock = clock;
  }

  /** The next list is read in full. */
  forget(): void {
    this.#known = undefined;
  }

  /**
   * @param version of the config's object, read before `config`
   * @throws SuiError; then the next list is read in full
   */
  async read(
    client: SuiGrpcClient,
    config: EnclaveConfig,
    version: string,
    signal: AbortSignal,
  ): Promise<Pick<Registered, 'enclaves' | 'destroyed'>> {
    const known = this.#known;
    this.forget();
    // Without a version there is nothing to compare.
    const isSame = /^\d+$/.test(version) && known?.configVersion === version;
    const isFresh = known !== undefined && this.#clock() - known.readAt < MAX_AGE_MS;
    if (known && isSame && isFresh && known.isSettled) {
      const list = await withoutDestroyed(client, known, signal);
      this.#known = { ...known, ...list };
      return list;
    }
    const readAt = this.#clock();
    const { enclaves, destroyed } = await listEnclaves(client, config, { signal });
    this.#known = { configVersion: version, readAt, isSettled: isSame, enclaves, destroyed };
    return { enclaves, destroyed };
  }
}

/** Asks whether the enclaves still exist: nothing else of an enclave changes. */
async function withoutDestroyed(
  client: SuiGrpcClient,
  { enclaves, destroyed }: Known,
  signal: AbortSignal,
): Promise<Pick<Known, 'enclaves' | 'destroyed'>> {
  if (enclaves.length === 0) return { enclaves, destroyed };
  const objectIds = enclaves.map(({ id }) => id);
  const { objects } = await fromNode(client.core.getObjects({ objectIds, signal }));
  const gone = new Set(objectIds.filter((_, index) => isMissing(objects[index])));
  return { enclaves: enclaves.filter(({ id }) => !gone.has(id)), destroyed: [...destroyed, ...gone] };
}

/** @throws SuiError for an object that the node does not tell of */
function isMissing(object: unknown): boolean {
  if (!(object instanceof Error)) return false;
  const error = suiErrorOf(object);
  if (error instanceof ObjectNotFoundError) return true;
  throw error;
}
