/** A wallet's page, as small as it can be: what it knows it shows, for the test to read. */
import { Transaction } from '@mysten/sui/transactions';
import {
  beginLogin,
  completeLogin,
  discoverProvider,
  getProof,
  getSalt,
  type Login,
  resumeLogin,
  resumeSession,
  type ZkLoginSession,
} from '../../../src/zklogin/index.ts';
import type { Settings } from './servers.ts';

const settings: Settings = JSON.parse(document.querySelector('#settings')?.textContent ?? '');
const { issuer, saltUrl, proverUrl, redirectUri, posted } = settings;
const currentEpoch = () => 100;
const legacyAddress = false;

function show(name: string, value: string): void {
  const output = document.querySelector(`#${name}`);
  if (output) output.textContent = value;
}

/** Shows an error by its code. */
async function run(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    show('error', String((error as { code?: string }).code ?? error));
  }
}

function onClick(name: string, work: () => Promise<void>): void {
  document.querySelector(`#${name}`)?.addEventListener('click', () => run(work));
}

for (const [button, { clientId, options }] of Object.entries(settings.clients)) {
  onClick(button, async () => {
    const provider = await discoverProvider(issuer, { name: 'oidc-provider', ...options });
    location.assign(beginLogin({ provider, clientId, redirectUri, currentEpoch: 100 }));
  });
}

async function sign(session: ZkLoginSession): Promise<void> {
  const transaction = new Transaction();
  transaction.setSender(session.address);
  transaction.setGasPrice(1000);
  transaction.setGasBudget(1_000_000);
  transaction.setGasPayment([
    { objectId: `0x${'1'.repeat(64)}`, version: '1', digest: '11111111111111111111111111111111' },
  ]);
  show('signature', await session.signTransaction(await transaction.build()));
  show('address', session.address);
}

function resumed<T>(resume: () => T): T | undefined {
  try {
    return resume();
  } catch {
    return undefined;
  }
}

onClick('prove', async () => {
  const login = resumeLogin();
  const salt = await getSalt(saltUrl, login.token);
  const proof = await getProof(proverUrl, login.proofRequest(salt));
  await sign(login.open({ salt, proof, legacyAddress, currentEpoch }));
});

async function showLogin(login: Login): Promise<void> {
  const salt = await getSalt(saltUrl, login.token);
  show('address', login.address(salt, { legacyAddress }));
  show('subject', login.claims.subject);
  show('salt', salt);
}

await run(async () => {
  const back = posted ?? (/[#&?]state=/.test(location.href) ? location.href : undefined);
  // Whoever reads the history finds no token.
  if (back !== undefined) history.replaceState(null, '', '/');
  const login = back === undefined ? resumed(() => resumeLogin()) : await completeLogin(back);
  const session = resumed(() => resumeSession({ currentEpoch }));
  if (login) await showLogin(login);
  else if (session) await sign(session);
});
show('ready', 'yes');
