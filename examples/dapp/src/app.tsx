import { useCurrentAccount, useDAppKit } from '@mysten/dapp-kit-react';
import { ConnectButton } from '@mysten/dapp-kit-react/ui';
import { useEffect, useState } from 'react';
import { certificatesFromPem } from 'sui-enclave/client';
import { useEnclave } from 'sui-enclave/react';
import { ProofPanel } from './enclave/proof_panel.tsx';
import { ReadingPanel } from './enclave/reading_panel.tsx';
import { useRegistration } from './enclave/registration.ts';
import { useReading } from './enclave/use_reading.ts';
import type { Reading } from './enclave/weather.ts';
import type { MintResult } from './mint/mint.ts';
import { MintPanel } from './mint/mint_panel.tsx';
import { MintedList } from './mint/minted_list.tsx';
import { useOwnedObjects } from './mint/owned.ts';
import { Toast } from './mint/toast.tsx';
import { TroubleNote } from './parts/trouble_note.tsx';
import type { Settings } from './settings.ts';
import { EXPIRED } from './trouble.ts';
import { ConfirmDialog } from './wallet/confirm_dialog.tsx';
import { useExpired } from './wallet/expiry.ts';

interface Props {
  readonly settings: Settings;
  /** Resolves to whether the connect button lists the login. Undefined if the settings have no login. */
  readonly hasLogin: Promise<boolean> | undefined;
}

export function App({ settings, hasLogin }: Props) {
  const { enclave: expected, sui } = settings;
  const enclave = useEnclave(expected.url, {
    policy: { images: [expected.image] },
    ...(expected.developmentRoots && { roots: certificatesFromPem(expected.developmentRoots) }),
  });
  const reading = useReading(enclave.client);
  const latestReading = reading.status === 'answered' ? reading.reading : undefined;
  const kit = useDAppKit();
  const account = useCurrentAccount();
  const registration = useRegistration(
    kit.getClient(),
    sui.configId,
    latestReading?.answer.publicKey ?? enclave.publicKey,
  );
  const [minted, setMinted] = useState<MintResult>();
  const owned = useOwnedObjects(kit.getClient(), sui.packageId, account?.address);
  const consolePlace = { url: sui.consoleUrl, node: sui.nodeUrl };
  const isExpired = useExpired() && account === null;
  const [refused, setRefused] = useState<{ readonly reading: Reading; readonly error: unknown }>();
  const isWithoutLogin = useIsFalse(hasLogin);
  return (
    <>
      <header>
        <a className="skip" href="#reading">
          Skip to the reading
        </a>
        <p className="brand">
          <img src="./icon.svg" alt="" width="28" height="28" />
          Attested weather
        </p>
        <span className="network">{sui.network}</span>
        <ConnectButton>Connect</ConnectButton>
      </header>
      <main>
        {expected.developmentRoots && (
          <p className="banner">
            Development: this page trusts emulated enclaves, whose attestation proves nothing.
          </p>
        )}
        {isExpired && <TroubleNote trouble={EXPIRED} />}
        <div className="intro">
          <h1>Weather that proves where it comes from</h1>
          <p className="lead">
            An enclave fetches the weather and signs it. Your browser checks what code runs there, and Sui
            checks the signature again before it makes an object of the reading.
          </p>
        </div>
        <div className="columns">
          <div className="column">
            <ReadingPanel reading={reading} enclave={enclave} url={expected.url} />
            <MintPanel
              settings={settings}
              reading={latestReading}
              registration={registration}
              account={account}
              isWithoutLogin={isWithoutLogin}
              onMinted={(minted) => {
                setMinted(minted);
                owned.refresh();
              }}
              onRefused={(reading, error) => setRefused({ reading, error })}
            />
          </div>
          <ProofPanel
            enclave={enclave}
            registration={registration}
            reading={reading}
            mintError={refused?.reading === latestReading ? refused?.error : undefined}
          />
        </div>
        <MintedList owned={owned} console={consolePlace} latestId={minted?.objectId} />
      </main>
      <Toast minted={minted} console={consolePlace} onDismiss={() => setMinted(undefined)} />
      <ConfirmDialog packageId={sui.packageId} />
    </>
  );
}

function useIsFalse(promise: Promise<boolean> | undefined): boolean {
  const [isFalse, setFalse] = useState(false);
  useEffect(() => {
    promise?.then((value) => setFalse(!value));
  }, [promise]);
  return isFalse;
}
