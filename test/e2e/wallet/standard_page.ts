/**
 * Runs the smallest dapp with zkLogin wallets, or its redirect page. The path of the URL decides which.
 */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { getWallets, type SuiWalletFeatures, type WalletWithFeatures } from '@mysten/wallet-standard';
import { type ConfirmRequest, registerZkLoginWallet } from 'sui-enclave/wallet';
import { answerLogin } from 'sui-enclave/wallet/redirect';
import { type DiscoveryOptions, discoverProvider } from 'sui-enclave/zklogin';

/** Settings that the server writes into the page. */
export interface PageSettings {
  readonly issuer: string;
  readonly saltUrl: string;
  readonly proverUrl: string;
  readonly nodeUrl: string;
  /** Clients of the provider. Each has a wallet. */
  readonly clients: readonly { readonly clientId: string; readonly options: Partial<DiscoveryOptions> }[];
  /** The key of the sponsor that pays, if there is one. */
  readonly sponsorKey: string | null;
  /** The body of a form_post, if there is one. */
  readonly posted: string | null;
}

export interface Outcome {
  readonly code?: string;
  readonly message?: string;
  readonly addresses?: readonly string[];
  readonly digest?: string;
  readonly bytes?: string;
}

export interface Dapp {
  readonly names: readonly string[];
  /** Returns the accounts of each wallet. */
  accounts(): string[][];
  /** Events `change`: the index of the wallet, and its addresses after the event. */
  readonly changes: [wallet: number, addresses: string[]][];
  /** Questions that the wallets asked the user. */
  readonly questions: { readonly kind: string; readonly wallet: string; readonly gasOwner: string | null }[];
  /** The user's answer to each question. */
  confirms: boolean;
  /** Outcome of the latest `connect`, or null while it is in progress. */
  connected: Outcome | null;
  connect(wallet: number): void;
  connectSilently(wallet: number): Promise<Outcome>;
  disconnect(wallet: number): Promise<Outcome>;
  send(wallet: number): Promise<Outcome>;
  sign(wallet: number): Promise<Outcome>;
  signMessage(wallet: number, text: string): Promise<Outcome>;
}

declare global {
  // The tests read it.
  var dapp: Dapp | undefined;
}

type SuiWallet = WalletWithFeatures<SuiWalletFeatures>;

const CHAIN = 'sui:localnet';
const settings: PageSettings = JSON.parse(document.querySelector('#settings')?.textContent ?? '');

async function runToOutcome(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const { code = 'none', message = String(error) } = error as Outcome;
    return { code, message };
  }
}

async function startDapp(): Promise<void> {
  const { issuer, saltUrl, proverUrl, nodeUrl, clients, sponsorKey } = settings;
  const questions: Dapp['questions'][number][] = [];
  registerZkLoginWallet({
    providers: await Promise.all(
      clients.map(async ({ clientId, options }) => ({
        provider: await discoverProvider(issuer, { name: clientId, ...options }),
        clientId,
      })),
    ),
    redirectUri: `${location.origin}/back`,
    client: new SuiGrpcClient({ network: 'localnet', baseUrl: nodeUrl }),
    salt: saltUrl,
    prover: proverUrl,
    legacyAddress: false,
    confirm: async (request: ConfirmRequest) => {
      const gasOwner = request.kind === 'transaction' ? request.transaction.gasData.owner : null;
      questions.push({ kind: request.kind, wallet: request.wallet, gasOwner });
      return dapp.confirms;
    },
    ...(sponsorKey !== null && { sponsor: Ed25519Keypair.fromSecretKey(sponsorKey) }),
  });
  const wallets = getWallets().get() as unknown as SuiWallet[];
  const changes: Dapp['changes'] = [];
  for (const [index, { features }] of wallets.entries()) {
    features['standard:events'].on('change', ({ accounts = [] }) => {
      changes.push([index, accounts.map(({ address }) => address)]);
    });
  }
  const featuresOf = (wallet: number) => (wallets[wallet] as SuiWallet).features;
  const connectWith = async (wallet: number, silent: boolean): Promise<Outcome> => {
    const { accounts } = await featuresOf(wallet)['standard:connect'].connect({ silent });
    return { addresses: accounts.map(({ address }) => address) };
  };
  const createRequest = (wallet: number) => {
    const [account] = accountsSeen[wallet] ?? [];
    if (account === undefined) throw new Error('never connected');
    return { transaction: new Transaction(), account, chain: CHAIN } as const;
  };
  /** Last accounts of each wallet, even after their removal: a dapp may be slow to notice it. */
  const accountsSeen: SuiWallet['accounts'][] = [];
  const rememberAccounts = () => {
    for (const [index, { accounts }] of wallets.entries()) {
      if (accounts.length > 0) accountsSeen[index] = accounts;
    }
  };
  let attempts = 0;
  const dapp: Dapp = {
    names: wallets.map(({ name }) => name),
    accounts: () => wallets.map(({ accounts }) => accounts.map(({ address }) => address)),
    changes,
    questions,
    confirms: true,
    connected: null,
    connect(wallet) {
      dapp.connected = null;
      const attempt = ++attempts;
      runToOutcome(() => connectWith(wallet, false)).then((outcome) => {
        rememberAccounts();
        if (attempt === attempts) dapp.connected = outcome;
      });
    },
    connectSilently: (wallet) =>
      runToOutcome(async () => {
        const outcome = await connectWith(wallet, true);
        rememberAccounts();
        return outcome;
      }),
    disconnect: (wallet) =>
      runToOutcome(async () => {
        await featuresOf(wallet)['standard:disconnect']?.disconnect();
        return {};
      }),
    send: (wallet) =>
      runToOutcome(async () => {
        const { signAndExecuteTransaction } = featuresOf(wallet)['sui:signAndExecuteTransaction'];
        const { digest } = await signAndExecuteTransaction(createRequest(wallet));
        return { digest };
      }),
    sign: (wallet) =>
      runToOutcome(async () => {
        const { bytes } = await featuresOf(wallet)['sui:signTransaction'].signTransaction(
          createRequest(wallet),
        );
        return { bytes };
      }),
    signMessage: (wallet, text) =>
      runToOutcome(async () => {
        const { account } = createRequest(wallet);
        const message = new TextEncoder().encode(text);
        const { bytes } = await featuresOf(wallet)['sui:signPersonalMessage'].signPersonalMessage({
          message,
          account,
          chain: CHAIN,
        });
        return { bytes };
      }),
  };
  for (const [index, name] of dapp.names.entries()) {
    const button = document.createElement('button');
    button.id = `connect-${index}`;
    button.textContent = name;
    button.addEventListener('click', () => dapp.connect(index));
    document.body.append(button);
  }
  globalThis.dapp = dapp;
  // The page connects without a click, so that a browser blocks the window.
  if (new URLSearchParams(location.search).has('connect')) dapp.connect(0);
}

if (location.pathname === '/back') await answerLogin(settings.posted ?? location.href);
else await startDapp();
