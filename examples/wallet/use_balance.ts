import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useCallback, useEffect, useState } from 'react';

export interface Balance {
  /** Undefined until the node has told it. */
  readonly mist: bigint | undefined;
  refresh(): void;
}

/** The SUI of an address. */
export function useBalance(client: ClientWithCoreApi, owner: string): Balance {
  const [mist, setMist] = useState<bigint>();
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let isCurrent = asked >= 0;
    client.core.getBalance({ owner }).then(
      ({ balance }) => isCurrent && setMist(BigInt(balance.balance)),
      () => isCurrent && setMist(undefined),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, owner, asked]);
  const refresh = useCallback(() => setAsked((count) => count + 1), []);
  return { mist, refresh };
}
