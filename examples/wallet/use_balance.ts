import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useCallback, useEffect, useState } from 'react';

export interface Balance {
  /** Balance in MIST; undefined until the node has returned it. */
  readonly mist: bigint | undefined;
  /** Whether the node did not answer the last request. */
  readonly isUnknown: boolean;
  refresh(): void;
}

/** Reads the SUI balance of an address. */
export function useBalance(client: ClientWithCoreApi, owner: string): Balance {
  const [mist, setMist] = useState<bigint>();
  const [isUnknown, setUnknown] = useState(false);
  const [refreshes, setRefreshes] = useState(0);
  useEffect(() => {
    let isCurrent = refreshes >= 0;
    const show = (balance: bigint | undefined) => {
      if (!isCurrent) return;
      setMist(balance);
      setUnknown(balance === undefined);
    };
    client.core.getBalance({ owner }).then(
      ({ balance }) => show(BigInt(balance.balance)),
      () => show(undefined),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, owner, refreshes]);
  const refresh = useCallback(() => setRefreshes((count) => count + 1), []);
  return { mist, isUnknown, refresh };
}
