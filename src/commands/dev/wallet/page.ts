/** A wallet's page, as small as possible: the README's, with buttons. It shows its state for tests to read. */
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { Transaction } from '@mysten/sui/transactions';
import { cancelLogin } from 'sui-enclave/zklogin';
import { client, session, settings, show, write } from './my_wallet.ts';
import { load, logIn } from './wallet.ts';

/** Shows an error by its code. */
async function run(work: () => unknown): Promise<void> {
  write('error', '');
  try {
    await work();
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string };
    write('error', `${code ?? ''} ${message ?? error}`);
  }
}

const buttons: Record<string, () => unknown> = {
  login: logIn,
  again: () => load(location.href),
  cancel: () => {
    cancelLogin();
    return load('');
  },
  async send() {
    if (!session) return;
    // The loopback node gives SUI to anyone who asks.
    await requestSuiFromFaucetV2({ host: settings.faucetUrl, recipient: session.address });
    const { digest } = await session.execute(new Transaction(), client);
    write('digest', digest);
  },
  logout: () => {
    session?.end();
    show.login('You have logged out.');
  },
};
for (const [name, work] of Object.entries(buttons)) {
  document.querySelector(`#${name}`)?.addEventListener('click', () => run(work));
}

await run(() => load(settings.posted ?? location.href));
write('ready', 'yes');
