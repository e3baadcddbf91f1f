/** Connects two buttons to the README's page. */
import { Transaction } from '@mysten/sui/transactions';
import { client, session } from './my_wallet.ts';
import { load, logIn } from './wallet.ts';

document.querySelector('#login')?.addEventListener('click', () => logIn());
document.querySelector('#send')?.addEventListener('click', async () => {
  const sent = await session?.execute(new Transaction(), client);
  document.title = sent?.digest ?? '';
});
await load(location.href);
