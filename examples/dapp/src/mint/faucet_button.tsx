/** Gets SUI for gas, on networks that have a faucet. */
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { useState } from 'react';
import type { Trouble } from '../trouble.ts';
import { otherTrouble } from '../trouble.ts';
import type { Balance } from './use_balance.ts';

interface Props {
  readonly url: string;
  readonly address: string;
  readonly balance: Balance;
  readonly onTrouble: (trouble: Trouble | undefined) => void;
}

/** Time between two requests for the balance, in milliseconds. With MAX_REQUESTS, the page waits for 20 s. */
const INTERVAL_MS = 500;
const MAX_REQUESTS = 40;

const WORDS = { ready: 'Get SUI for gas', asking: 'Asking the faucet …', waiting: 'SUI is on its way' };
const LATE: Trouble = {
  kind: 'other',
  title: 'The SUI has not arrived yet',
  text: 'The faucet has sent it, but the node does not show it yet.',
  advice: 'Wait a minute, then look at your balance, or ask the faucet again.',
};

export function FaucetButton({ url, address, balance, onTrouble }: Props) {
  const [state, setState] = useState<keyof typeof WORDS>('ready');

  async function ask() {
    setState('asking');
    onTrouble(undefined);
    try {
      const before = await balance.refresh();
      await requestSuiFromFaucetV2({ host: url, recipient: address });
      setState('waiting');
      if (!(await hasArrived(before))) onTrouble(LATE);
    } catch (error) {
      onTrouble(otherTrouble(error));
    } finally {
      setState('ready');
    }
  }

  async function hasArrived(before: bigint | undefined): Promise<boolean> {
    for (let count = 0; count < MAX_REQUESTS; count += 1) {
      const current = await balance.refresh();
      if (current !== undefined && current > (before ?? 0n)) return true;
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }
    return false;
  }

  return (
    <button type="button" disabled={state !== 'ready'} onClick={ask}>
      {WORDS[state]}
    </button>
  );
}
