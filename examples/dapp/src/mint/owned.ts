/**
 * Lists the contract's objects that an account owns. It reads them from the chain, so they stay after a
 * reload.
 */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useCallback, useEffect, useState } from 'react';
import { readPackage } from 'sui-enclave/sui';
import { degreesText, tenthsText } from '../enclave/weather.ts';

/** An object of the contract, with its fields on chain. */
export interface Minted {
  readonly id: string;
  /** The name of the object's struct. */
  readonly name: 'WeatherNFT' | 'TemperatureNFT';
  readonly owner: string;
  readonly location: string;
  readonly celsius: string;
  readonly timestampMs: number;
  /** Digest of the transaction that wrote the object last; null if the node does not say. */
  readonly digest: string | null;
}

// These fields are those that `move/weather` declares.
const WeatherNft = bcs.struct('WeatherNFT', {
  id: bcs.Address,
  location: bcs.string(),
  temperature: bcs.u64(),
  timestamp_ms: bcs.u64(),
});
const TemperatureNft = bcs.struct('TemperatureNFT', {
  id: bcs.Address,
  location: bcs.string(),
  tenths_plus_100000: bcs.u64(),
  timestamp_ms: bcs.u64(),
});

const READERS = {
  WeatherNFT(content: Uint8Array) {
    const { id, location, temperature, timestamp_ms } = WeatherNft.parse(content);
    return { id, location, celsius: degreesText(BigInt(temperature)), timestampMs: Number(timestamp_ms) };
  },
  TemperatureNFT(content: Uint8Array) {
    const { id, location, tenths_plus_100000, timestamp_ms } = TemperatureNft.parse(content);
    return {
      id,
      location,
      celsius: tenthsText(BigInt(tenths_plus_100000)),
      timestampMs: Number(timestamp_ms),
    };
  },
};

/** Maximum number of objects of one type that the page lists. */
const MAX_LISTED = 50;

/**
 * @param packageId of any version of the package `weather`
 * @returns the objects, the latest first
 * @throws Error of the client; SuiError
 */
export async function listMinted(
  client: ClientWithCoreApi,
  packageId: string,
  owner: string,
  signal: AbortSignal,
): Promise<Minted[]> {
  // The id of an upgraded package differs from the id in its types.
  const { typeOrigins } = await readPackage(client, packageId, { signal });
  const lists = await Promise.all(
    (['WeatherNFT', 'TemperatureNFT'] as const).map(async (name) => {
      const origin = typeOrigins.get(`weather::${name}`);
      if (origin === undefined) return [];
      const { objects } = await client.core.listOwnedObjects({
        owner,
        type: `${origin}::weather::${name}`,
        limit: MAX_LISTED,
        include: { content: true, previousTransaction: true },
        signal,
      });
      return objects.map(({ content, previousTransaction }) => ({
        ...READERS[name](content),
        name,
        owner,
        digest: previousTransaction ?? null,
      }));
    }),
  );
  return lists.flat().sort((first, second) => second.timestampMs - first.timestampMs);
}

export interface OwnedObjects {
  readonly objects: readonly Minted[];
  /** Error of reading the objects; undefined if there was none. */
  readonly error: unknown;
  refresh(): void;
}

/** @param owner undefined while no account is connected */
export function useOwnedObjects(
  client: ClientWithCoreApi,
  packageId: string,
  owner: string | undefined,
): OwnedObjects {
  const [state, setState] = useState<Pick<OwnedObjects, 'objects' | 'error'>>({
    objects: [],
    error: undefined,
  });
  const [refreshes, setRefreshes] = useState(0);
  useEffect(() => {
    const reading = new AbortController();
    const show = (objects: readonly Minted[], error?: unknown) => {
      if (!reading.signal.aborted) setState({ objects, error });
    };
    if (owner === undefined || refreshes < 0) show([]);
    else {
      listMinted(client, packageId, owner, reading.signal).then(
        (objects) => show(objects),
        (error: unknown) => show([], error),
      );
    }
    return () => reading.abort();
  }, [client, packageId, owner, refreshes]);
  const refresh = useCallback(() => setRefreshes((count) => count + 1), []);
  return { ...state, refresh };
}
