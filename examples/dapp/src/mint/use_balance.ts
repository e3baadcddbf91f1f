/** Reads the SUI balance of an account. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { useCallback, useEffect, useState } from 'react';

export interface Balance {
  /** Balance in MIST; undefined until the node has returned it, or if the node does not answer. */
  readonly mist: bigint | undefined;
  /** Asks the node again, and returns the new balance. */
  refresh(): Promise<bigint | undefined>;
}

const MIST_PER_SUI = 1_000_000_000;

export function formatSui(mist: bigint): string {
  return `${(Number(mist) / MIST_PER_SUI).toFixed(4)} SUI`;
}

/** @param owner undefined while no account is connected */
export function useBalance(client: ClientWithCoreApi, owner: string | undefined): Balance {
  const [balance, setBalance] = useState<{ readonly owner: string; readonly mist: bigint | undefined }>();
  const refresh = useCallback(async () => {
    if (owner === undefined) return undefined;
    const mist = await client.core.getBalance({ owner }).then(
      (answer) => BigInt(answer.balance.balance),
      () => undefined,
    );
    setBalance({ owner, mist });
    return mist;
  }, [client, owner]);
  useEffect(() => {
    void refresh();
  }, [refresh]);
  // A balance of another account is not shown.
  return { mist: balance?.owner === owner ? balance?.mist : undefined, refresh };
}
