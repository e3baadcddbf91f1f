/** Shows the login before there is a session: the providers, the steps of the login, and its errors. */
import { useState } from 'react';
import type { UsedZkLogin, ZkLoginStep } from 'sui-enclave/react';
import { discoverProvider } from 'sui-enclave/zklogin';
import { useJob } from '../../src/console/lib/use_job.ts';
import { Panel } from '../../src/console/parts/panel.tsx';
import { Verdict } from '../../src/console/parts/verdict.tsx';
import { Problem } from './problem.tsx';
import { Steps } from './steps.tsx';
import { settings } from './surroundings.ts';

const PROVIDER = 'oidc-provider';
const { ways: clients, issuer } = settings;
const [firstClient] = clients;

const TITLES: Readonly<Record<ZkLoginStep, string>> = {
  loading: 'One moment',
  none: 'Log in',
  leaving: 'Redirecting to the provider',
  token: 'Checking the token',
  salt: 'Asking for your salt',
  proof: 'Making the proof',
  open: 'You are logged in',
  expired: 'Your session has expired',
};

/** Texts to show while a step is under way. */
const WAITING: Readonly<Partial<Record<ZkLoginStep, string>>> = {
  loading: 'The page looks for a session, and asks the node for the epoch.',
  token: 'The page checks the provider’s answer.',
  salt: 'The salt service verifies the token.',
  proof: 'The address is derived. The session begins when the proof arrives.',
};

export function LoginView({ login }: { readonly login: UsedZkLogin }) {
  const { step, error } = login;
  const mayLogIn = step === 'none' || step === 'expired';
  const isWaiting = step === 'salt' || step === 'proof';
  return (
    <>
      <div>
        <h1>{TITLES[step]}</h1>
        <p className="lead">
          zkLogin derives an address on Sui from a login at an OpenID provider. The provider does not learn
          the address. The chain shows which provider you used, but not who you are there.
        </p>
      </div>
      {step === 'expired' && error === undefined && (
        <Verdict tone="warning" title="Log in again" code="ZKLOGIN_EXPIRED">
          <p>
            The last epoch of the session has passed. A new login creates a new key. With the same name and
            the same way of answering, the address stays the same.
          </p>
        </Verdict>
      )}
      {error !== undefined && <Problem title="The login has stopped" error={error} />}
      <div className="columns">
        <div className="stack">
          {mayLogIn || step === 'leaving' ? (
            <ProviderPanel login={login} isEnabled={mayLogIn} />
          ) : (
            <Panel title="This login">
              <div className="stack">
                <p role="status">
                  {error === undefined
                    ? WAITING[step]
                    : 'This tab keeps the login, so that you can try again.'}
                </p>
                <div className="buttons">
                  <button
                    type="button"
                    className="ds-button"
                    disabled={error === undefined}
                    onClick={login.retry}
                  >
                    Try again
                  </button>
                  <button
                    type="button"
                    className="ds-button"
                    data-variant="secondary"
                    disabled={!isWaiting}
                    onClick={login.cancel}
                  >
                    Cancel
                  </button>
                </div>
              </div>
            </Panel>
          )}
        </div>
        <Panel title="What happens">
          <Steps {...login} />
        </Panel>
      </div>
    </>
  );
}

interface ProviderProps {
  readonly login: UsedZkLogin;
  readonly isEnabled: boolean;
}

function ProviderPanel({ login, isEnabled }: ProviderProps) {
  const [how, setHow] = useState(firstClient?.how);
  const [failure, setFailure] = useState<unknown>();
  const job = useJob(setFailure);
  const client = clients.find((candidate) => candidate.how === how);
  const isReady = isEnabled && client !== undefined && job.step === undefined;
  const logIn = () => {
    if (client === undefined) return;
    setFailure(undefined);
    job.start(async ({ signal, step }) => {
      step('Asking the provider');
      const provider = await discoverProvider(issuer, { name: PROVIDER, ...client.options, signal });
      login.logIn({ provider, clientId: client.clientId, redirectUri: `${location.origin}/back` });
    });
  };
  return (
    <Panel title="Provider" aside={<span className="subtle">{new URL(issuer).host}</span>}>
      <div className="stack">
        <fieldset className="ways">
          <legend className="ds-label">How the provider answers</legend>
          {clients.map(({ how: name, title, text }) => (
            <label key={name}>
              <input
                type="radio"
                name="how"
                value={name}
                checked={name === how}
                onChange={() => setHow(name)}
              />
              <span>
                {title}
                <span className="hint">{text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <div className="buttons">
          <button type="button" className="ds-button" disabled={!isReady} onClick={logIn}>
            Log in with {PROVIDER}
          </button>
          {login.step === 'expired' && (
            <button type="button" className="ds-button" data-variant="secondary" onClick={login.logOut}>
              Log out
            </button>
          )}
        </div>
        <p className="hint">
          This provider runs on this machine, and accepts any name and password. Each name is a user. Each way
          of answering has a client id of its own, under which the same user has another address.
        </p>
        {failure !== undefined && <Problem title="The request to the provider has failed" error={failure} />}
      </div>
    </Panel>
  );
}
