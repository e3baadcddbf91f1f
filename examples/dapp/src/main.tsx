import { DAppKitProvider } from '@mysten/dapp-kit-react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { type LoginSettings, loadSettings, type Settings, SettingsError } from './settings.ts';
import { createKit, type Kit } from './wallet/kit.ts';
import './styles.css';

const container = document.querySelector('#root');
if (container === null) throw new Error('the page has no #root');
const root = createRoot(container);

try {
  await start(await loadSettings());
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  root.render(
    <main>
      <div className="note other" role="alert">
        <h1>This page is not set up</h1>
        <p>{error.message}</p>
        <p>
          <strong>What to do:</strong> write <code>settings.json</code>, as README.md explains, and load the
          page again.
        </p>
      </div>
    </main>,
  );
}

async function start(settings: Settings): Promise<void> {
  const kit = createKit(settings);
  const { login } = settings;
  // Without a login, the page is still useful: it lists installed wallets, and readings need no wallet.
  const hasLogin = login && offerLogin(kit, login).catch(reportMissing);
  root.render(
    <StrictMode>
      <DAppKitProvider dAppKit={kit}>
        <App settings={settings} hasLogin={hasLogin} />
      </DAppKitProvider>
    </StrictMode>,
  );
}

/**
 * Offers the login. The page does not wait for it, since zkLogin is half of the page's code, and needs the
 * provider.
 */
async function offerLogin(kit: Kit, login: LoginSettings): Promise<true> {
  const { registerLogin } = await import('./wallet/zklogin.ts');
  await registerLogin(kit.getClient(), login);
  return true;
}

function reportMissing(error: unknown): false {
  // biome-ignore lint/suspicious/noConsole: for the operator of the page; its user sees a sentence
  console.warn('There is no login:', error);
  return false;
}
