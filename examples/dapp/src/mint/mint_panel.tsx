/** Turns the reading into an object of the connected account. */
import { type UiWalletAccount, useDAppKit } from '@mysten/dapp-kit-react';
import { formatAddress } from '@mysten/sui/utils';
import { useState } from 'react';
import type { useRegistration } from '../enclave/registration.ts';
import { celsius, type Reading } from '../enclave/weather.ts';
import { TroubleNote } from '../parts/trouble_note.tsx';
import type { Settings } from '../settings.ts';
import { otherTrouble, staleTrouble, type Trouble } from '../trouble.ts';
import { FaucetButton } from './faucet_button.tsx';
import { type MintResult, mint } from './mint.ts';
import { formatSui, useBalance } from './use_balance.ts';

interface Props {
  readonly settings: Settings;
  readonly reading: Reading | undefined;
  readonly registration: ReturnType<typeof useRegistration>;
  readonly account: UiWalletAccount | null;
  readonly isWithoutLogin: boolean;
  readonly onMinted: (minted: MintResult) => void;
  readonly onRefused: (reading: Reading, error: unknown) => void;
}

export function MintPanel(props: Props) {
  const { settings, reading, registration, account, isWithoutLogin, onMinted, onRefused } = props;
  const kit = useDAppKit();
  const balance = useBalance(kit.getClient(), account?.address);
  const [isMinting, setMinting] = useState(false);
  const [trouble, setTrouble] = useState<Trouble>();
  const enclaveId = registration.state === 'registered' ? registration.enclaveId : undefined;

  async function start(order: { reading: Reading; enclaveId: string; owner: string }) {
    setMinting(true);
    setTrouble(undefined);
    try {
      onMinted(await mint({ kit, sui: settings.sui, ...order }));
      void balance.refresh();
    } catch (error) {
      setTrouble(otherTrouble(error));
      onRefused(order.reading, error);
    } finally {
      setMinting(false);
    }
  }

  const order = reading && enclaveId && account ? { reading, enclaveId, owner: account.address } : undefined;
  return (
    <section className="panel" aria-labelledby="mint-title">
      <h2 id="mint-title">Keep it on Sui</h2>
      <p className="subtle">
        {account
          ? `${formatAddress(account.address)} gets the object, and pays the gas${balance.mist === undefined ? '' : ` from its ${formatSui(balance.mist)}`}.`
          : 'Connect a wallet or log in: the object will be yours.'}
      </p>
      {settings.login && !isWithoutLogin && !account && (
        <p className="subtle">
          A login has an address for this page only: on another page, it has another address.
        </p>
      )}
      {isWithoutLogin && !account && (
        <p className="subtle">
          The provider of the login does not answer, so only installed wallets are listed. Load the page again
          to retry.
        </p>
      )}
      {registration.state === 'stale' && (
        <TroubleNote
          trouble={staleTrouble(registration.why)}
          action={['Check again', registration.refresh]}
        />
      )}
      {registration.state === 'failed' && (
        <TroubleNote
          trouble={otherTrouble(registration.error)}
          action={['Check again', registration.refresh]}
        />
      )}
      <div className="buttons">
        <button
          type="button"
          className="primary"
          disabled={order === undefined || isMinting}
          onClick={() => order && start(order)}
        >
          {isMinting ? 'Minting …' : reading ? `Mint ${celsius(reading)}` : 'Mint the reading'}
        </button>
        {account && settings.sui.faucetUrl && (
          <FaucetButton
            url={settings.sui.faucetUrl}
            address={account.address}
            balance={balance}
            onTrouble={setTrouble}
          />
        )}
      </div>
      <p aria-live="polite" className="hidden">
        {isMinting ? 'The reading is being minted.' : ''}
      </p>
      {trouble && <TroubleNote trouble={trouble} />}
    </section>
  );
}
