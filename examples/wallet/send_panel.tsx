import { Transaction } from '@mysten/sui/transactions';
import { isValidSuiAddress } from '@mysten/sui/utils';
import { useState } from 'react';
import { Panel } from '../../src/console/parts/panel.tsx';
import { TextField } from '../../src/console/parts/text_field.tsx';
import { ignoreHeldEnter } from './held_keys.ts';
import type { Balance } from './use_balance.ts';
import type { Sender } from './wallet_view.tsx';
import { formatSui, parseMist, shortenId } from './words.ts';

interface Props {
  readonly sender: Sender;
  readonly balance: Balance;
}

export function SendPanel({ sender, balance }: Props) {
  const [recipient, setRecipient] = useState('');
  const [amount, setAmount] = useState('');
  const to = recipient.trim();
  const mist = parseMist(amount);
  const isTooMuch = mist !== undefined && balance.mist !== undefined && mist >= balance.mist;
  const isReady = isValidSuiAddress(to) && mist !== undefined && balance.mist !== undefined && !isTooMuch;
  const send = () => {
    if (!isReady || sender.isBusy) return;
    const transaction = new Transaction();
    transaction.transferObjects([transaction.splitCoins(transaction.gas, [mist])], to);
    sender.send(`Send ${formatSui(mist)} SUI to ${shortenId(to)}`, transaction, () => setAmount(''));
  };
  return (
    <Panel title="Send">
      <form
        className="stack"
        onKeyDown={ignoreHeldEnter}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <TextField
          label="To"
          placeholder="0x…"
          value={recipient}
          onChange={setRecipient}
          problem={
            to !== '' && !isValidSuiAddress(to) ? 'Enter a full address: 0x and 64 hex digits.' : undefined
          }
        />
        <TextField
          label="Amount in SUI"
          placeholder="0.5"
          inputMode="decimal"
          value={amount}
          onChange={setAmount}
          problem={describeProblem(amount, mist, isTooMuch)}
        />
        <button type="submit" className="ds-button" disabled={!isReady || sender.isBusy}>
          Send
        </button>
        {balance.mist === 0n && <p className="hint">Get SUI first, for the transfer and its gas.</p>}
      </form>
    </Panel>
  );
}

function describeProblem(amount: string, mist: bigint | undefined, isTooMuch: boolean): string | undefined {
  if (amount.trim() === '') return undefined;
  if (mist === undefined) return 'Enter an amount above 0, with at most 9 decimals.';
  return isTooMuch ? 'The amount must be less than the balance, which also pays the gas.' : undefined;
}
