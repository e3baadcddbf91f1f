import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useCallback, useEffect, useState } from 'react';

export interface Balance {
  /** Balance in MIST; undefined until the node has returned it. */
  readonly mist: bigint | undefined;
  /** Whether it did not answer when it was asked last. */
  readonly isUnknown: boolean;
  refresh(): void;
}

/** The SUI of an address. */
export function useBalance(client: ClientWithCoreApi, owner: string): Balance {
  const [mist, setMist] = useState<bigint>();
  const [isUnknown, setUnknown] = useState(false);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let isCurrent = asked >= 0;
    const show = (found: bigint | undefined) => {
      if (!isCurrent) return;
      setMist(found);
      setUnknown(found === undefined);
    };
    client.core.getBalance({ owner }).then(
      ({ balance }) => show(BigInt(balance.balance)),
      () => show(undefined),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, owner, asked]);
  const refresh = useCallback(() => setAsked((count) => count + 1), []);
  return { mist, isUnknown, refresh };
}
