import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import type { ZkLoginSession } from 'sui-enclave/zklogin';
import { useJob } from '../../src/console/lib/use_job.ts';
import { CopyButton } from '../../src/console/parts/copy_button.tsx';
import { Facts } from '../../src/console/parts/facts.tsx';
import { Panel } from '../../src/console/parts/panel.tsx';
import { settings } from './surroundings.ts';
import type { Balance } from './use_balance.ts';
import type { Failures } from './wallet_view.tsx';
import { formatSui, shortenId } from './words.ts';

interface Props {
  readonly session: ZkLoginSession;
  readonly balance: Balance;
  readonly failures: Failures;
  readonly onLogOut: () => void;
}

export function AccountPanel({ session, balance, failures, onLogOut }: Props) {
  const { address, maxEpoch } = session;
  const job = useJob((error) => failures.add('The faucet sent no SUI', error));
  const ask = () => {
    failures.clear();
    job.start(async ({ step }) => {
      step('Asking the faucet');
      await requestSuiFromFaucetV2({ host: settings.faucetUrl, recipient: address });
      balance.refresh();
    });
  };
  return (
    <Panel title="Account">
      <div className="stack">
        <Facts
          rows={[
            [
              'Address',
              <span className="bytes" key="address">
                <code title={address} data-address={address}>
                  {shortenId(address)}
                </code>
                <CopyButton text={address} name="the address" />
              </span>,
            ],
            ['Balance', <output key="balance">{formatBalance(balance)}</output>],
            ['Session', `It can sign until epoch ${maxEpoch} ends.`],
          ]}
        />
        <div className="buttons">
          <button type="button" className="ds-button" disabled={job.step !== undefined} onClick={ask}>
            Get 10 SUI
          </button>
          <button type="button" className="ds-button" data-variant="secondary" onClick={onLogOut}>
            Log out
          </button>
        </div>
      </div>
    </Panel>
  );
}

function formatBalance({ mist, isUnknown }: Balance): string {
  if (mist !== undefined) return `${formatSui(mist)} SUI`;
  return isUnknown ? 'The node did not answer. Load the page again.' : '…';
}
