import { useZkLogin } from 'sui-enclave/react';
import { Failure } from '../../src/console/parts/failure.tsx';
import { Tag } from '../../src/console/parts/tag.tsx';
import { LoginView } from './login_view.tsx';
import { client, settings } from './surroundings.ts';
import { WalletView } from './wallet_view.tsx';

const icon = new URL('../../src/console/icon.svg', import.meta.url).href;

export function App() {
  const login = useZkLogin({
    client,
    salt: settings.saltUrl,
    prover: settings.proverUrl,
    legacyAddress: false,
    home: '/',
    ...(settings.posted !== null && { answer: settings.posted }),
  });
  return (
    <>
      <title>sui-enclave wallet</title>
      <header className="bar">
        <span className="brand">
          <img src={icon} alt="" width="24" height="24" />
          sui-enclave <span className="subtle">wallet</span>
        </span>
        <Tag tone="warning">Development</Tag>
      </header>
      <main data-step={login.step} data-failed={login.error !== undefined}>
        <Failure>
          <div className="view">
            {login.session === undefined ? (
              <LoginView login={login} />
            ) : (
              <WalletView key={login.session.address} session={login.session} login={login} />
            )}
          </div>
        </Failure>
      </main>
      <footer className="foot">
        Key, token and proof are in this tab’s session storage, and are deleted when you log out or close the
        tab. Anyone who can run a script in this page can use the session.
      </footer>
    </>
  );
}
