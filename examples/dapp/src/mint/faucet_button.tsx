/** SUI for gas, on networks that have a faucet. */
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { useState } from 'react';
import type { Trouble } from '../trouble.ts';
import { otherTrouble } from '../trouble.ts';

interface Props {
  readonly url: string;
  readonly address: string;
  readonly onTrouble: (trouble: Trouble | undefined) => void;
}

/** The time for which it says that SUI is on its way. */
const DONE_MS = 5000;

const WORDS = { ready: 'Get SUI for gas', asking: 'Asking the faucet …', done: 'SUI is on its way' };

export function FaucetButton({ url, address, onTrouble }: Props) {
  const [state, setState] = useState<keyof typeof WORDS>('ready');
  async function ask() {
    setState('asking');
    onTrouble(undefined);
    try {
      await requestSuiFromFaucetV2({ host: url, recipient: address });
      setState('done');
      setTimeout(() => setState('ready'), DONE_MS);
    } catch (error) {
      setState('ready');
      onTrouble(otherTrouble(error));
    }
  }
  return (
    <button type="button" disabled={state === 'asking'} onClick={ask}>
      {WORDS[state]}
    </button>
  );
}
