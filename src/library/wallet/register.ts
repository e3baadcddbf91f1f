import type { WalletIcon } from '@mysten/wallet-standard';
import { ZkLoginError } from '../zklogin/errors.ts';
import { type SessionStore, sessionStore } from '../zklogin/storage.ts';
import { confirmInTurn } from './confirm.ts';
import { type RegisterOptions, readRegisterOptions, walletId } from './options.ts';
import { type RegisteredWallet, ZkLoginWallet } from './wallet.ts';

/** The registered wallets, and a function that removes them. */
export interface RegisteredWallets {
  /** The wallets, one for each provider, in the order of the option `providers`. */
  readonly wallets: readonly RegisteredWallet[];
  /** Removes the wallets from the page, and cancels their logins. Open sessions stay in the storage. */
  unregister(): void;
}

/** The image of a key. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1b4b8f"/><g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"><circle cx="11.5" cy="20.5" r="4.7"/><path d="M15 17 24 8M20.2 11.8l3.4 3.4"/></g></svg>`;

/**
 * Registers a wallet for each provider with the page's Wallet Standard, so that the connect button of a dapp
 * lists them. Resumes an open session from the storage, or completes a login by redirect. Call this
 * once, when the page is loaded. A later call replaces the wallets of the same provider and client id, for
 * example when a development server loads the page's module again.
 *
 * Exported from `sui-enclave/wallet`.
 *
 * @throws ZkLoginError: ZKLOGIN_OPTION, including outside of a page and in a frame; ZKLOGIN_STORAGE
 * @example
 * registerZkLoginWallet({
 *   providers: [{ provider: PROVIDERS.google, clientId }],
 *   redirectUri: `${location.origin}/back`,
 *   client,
 *   salt,
 *   prover,
 *   confirm,
 *   legacyAddress: false,
 * });
 */
export function registerZkLoginWallet(options: RegisterOptions): RegisteredWallets {
  if (typeof window === 'undefined') {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'there is no window here: call registerZkLoginWallet in a page');
  }
  if (window.top !== window) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'the page is in a frame of another page, where browsers block its storage, or separate it from the storage of the login window: open the page in a tab of its own',
    );
  }
  const { providers, confirm, storage, ...shared } = readRegisterOptions(options);
  const store = sessionStore(storage);
  const askUser = confirmInTurn(confirm);
  const removers = readRegistered();
  const wallets = providers.map((entry) => {
    const id = walletId(entry);
    removers.get(id)?.();
    return new ZkLoginWallet({
      ...shared,
      id,
      providerEntry: entry,
      askUser,
      store: addPrefix(store, id),
      storeSurvives: storage === undefined,
      name: entry.name ?? `${entry.provider.name} (this app only)`,
      icon: entry.icon ?? createIcon(ICON),
    });
  });
  for (const wallet of wallets) wallet.start();
  const removals = wallets.map((wallet) => {
    const withdraw = announce(wallet);
    const remove = () => {
      if (removers.get(wallet.id) === remove) removers.delete(wallet.id);
      withdraw();
      wallet.stop();
    };
    removers.set(wallet.id, remove);
    return remove;
  });
  return {
    wallets,
    unregister() {
      for (const remove of removals) remove();
    },
  };
}

const REGISTERED = Symbol.for('sui-enclave/wallet/registered');

/**
 * Reads the functions that remove the registered wallets of this page, by wallet id. The window keeps them,
 * since a bundle may contain this module twice.
 */
function readRegistered(): Map<string, () => void> {
  const page: { [REGISTERED]?: Map<string, () => void> } = window as object;
  page[REGISTERED] ??= new Map();
  return page[REGISTERED];
}

function createIcon(svg: string): WalletIcon {
  return `data:image/svg+xml;base64,${btoa(svg)}`;
}

/** Returns a store whose keys are stored in another store, with a prefix. */
function addPrefix(store: SessionStore, prefix: string): SessionStore {
  const formatKey = (key: string) => `${prefix}/${key}`;
  return {
    persistent: false,
    get: (key) => store.get(formatKey(key)),
    set: (key, value) => store.set(formatKey(key), value),
    remove: (key) => store.remove(formatKey(key)),
  };
}

interface Registry {
  register(...wallets: readonly RegisteredWallet[]): () => void;
}

/**
 * Announces a wallet by the two events of the Wallet Standard. It does not use the functions of the
 * standard's package: a bundle may contain the package twice, and each copy keeps a list of its own.
 *
 * @returns a function that removes the wallet from every list
 */
function announce(wallet: RegisteredWallet): () => void {
  const removals: (() => void)[] = [];
  const register = (registry: Registry) => removals.push(registry.register(wallet));
  const onReady = (event: Event) => {
    if ('detail' in event && isRegistry(event.detail)) register(event.detail);
  };
  window.addEventListener('wallet-standard:app-ready', onReady);
  window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }));
  return () => {
    window.removeEventListener('wallet-standard:app-ready', onReady);
    for (const remove of removals) remove();
  };
}

function isRegistry(detail: unknown): detail is Registry {
  return typeof detail === 'object' && detail !== null && 'register' in detail;
}
