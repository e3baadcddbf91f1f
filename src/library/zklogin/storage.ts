/**
 * Keeps the ephemeral key, the token and the proof in the session storage, and nowhere else. Anyone who has
 * the key and the proof can sign for the user until maxEpoch.
 */
import type { ZkLoginSignatureInputs } from '@mysten/sui/zklogin';
import type { Provider } from '../token/providers.ts';
import { ZkLoginError } from './errors.ts';

/** A storage that ends with the session. */
export interface SessionStore {
  /** Declares that the storage's content doesn't outlive the session. An object without this is refused. */
  readonly persistent: false;
  /** Returns the value of a key; null if it has none. */
  get(key: string): string | null;
  /** Stores a value under a key. */
  set(key: string, value: string): void;
  /** Removes a key and its value. */
  remove(key: string): void;
}

/** The state between beginLogin and the provider's answer. */
export interface BegunLogin {
  readonly stage: 'begun';
  readonly provider: Pick<Provider, 'name' | 'issuer' | 'token'>;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly randomness: string;
  readonly maxEpoch: number;
  /** The ephemeral secret key as `suiprivkey…`. */
  readonly secretKey: string;
}

/** The state between the provider's answer and the proof. */
export interface CompleteLogin extends Omit<BegunLogin, 'stage' | 'state' | 'redirectUri'> {
  readonly stage: 'complete';
  readonly jwt: string;
}

/** The state of an open session, which can sign. */
export interface OpenSession {
  readonly stage: 'open';
  readonly address: string;
  readonly legacyAddress: boolean;
  readonly maxEpoch: number;
  readonly secretKey: string;
  readonly inputs: ZkLoginSignatureInputs;
}

const LOGIN = 'sui-enclave/zklogin/login';
const SESSION = 'sui-enclave/zklogin/session';

/**
 * Returns the browser's session storage, whose content survives a reload and ends with the tab.
 *
 * @throws ZkLoginError: ZKLOGIN_STORAGE outside browsers
 */
export function createBrowserStore(): SessionStore {
  const storage = readSessionStorage();
  if (!storage) {
    throw new ZkLoginError(
      'ZKLOGIN_STORAGE',
      'there is no session storage here: pass one, such as createMemoryStore()',
    );
  }
  return {
    persistent: false,
    get: (key) => storage.getItem(key),
    set: (key, value) => storage.setItem(key, value),
    remove: (key) => storage.removeItem(key),
  };
}

/**
 * Returns the storage in which a login must have been begun. Without a storage, there can be no login.
 *
 * @throws ZkLoginError: ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE
 */
export function loginStore(store: SessionStore | undefined): SessionStore {
  if (store === undefined && !readSessionStorage()) {
    throw new ZkLoginError(
      'ZKLOGIN_NO_LOGIN',
      'no login is in progress: there is no session storage here, so pass a storage such as createMemoryStore() to beginLogin, and the same storage to this call',
    );
  }
  return sessionStore(store);
}

/** Returns the session storage. A browser that blocks it throws when a page reads the property. */
function readSessionStorage(): Storage | null | undefined {
  try {
    return globalThis.sessionStorage;
  } catch (cause) {
    throw new ZkLoginError(
      'ZKLOGIN_STORAGE',
      'the browser blocks the session storage of this page: allow its site data, or pass a storage such as createMemoryStore()',
      { cause },
    );
  }
}

/** Returns a storage in memory, which ends with the process or page. */
export function createMemoryStore(): SessionStore {
  const values = new Map<string, string>();
  return {
    persistent: false,
    get: (key) => values.get(key) ?? null,
    set: (key, value) => {
      values.set(key, value);
    },
    remove: (key) => {
      values.delete(key);
    },
  };
}

/**
 * Returns the storage, by default the browser's session storage.
 *
 * @throws ZkLoginError: ZKLOGIN_STORAGE for local storage, and for any storage that doesn't declare
 *   `persistent: false`
 */
export function sessionStore(customStore: SessionStore | undefined): SessionStore {
  const store = customStore ?? createBrowserStore();
  if (store?.persistent !== false) {
    throw new ZkLoginError(
      'ZKLOGIN_STORAGE',
      'the ephemeral key and the proof may be kept for the session only: local storage and the like are refused; leave out storage to use the session storage of the browser',
    );
  }
  return store;
}

export function saveLogin(store: SessionStore, login: BegunLogin | CompleteLogin): void {
  store.set(LOGIN, JSON.stringify(login));
}

/** Returns the stored login, or null. @throws ZkLoginError: ZKLOGIN_STORAGE */
export function findLogin(store: SessionStore): BegunLogin | CompleteLogin | null {
  return readEntry<BegunLogin | CompleteLogin>(store, LOGIN);
}

/** Returns the stored login. @throws ZkLoginError: ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE */
export function loadLogin(store: SessionStore): BegunLogin | CompleteLogin {
  const login = findLogin(store);
  if (login === null) {
    throw new ZkLoginError('ZKLOGIN_NO_LOGIN', 'no login is in progress in this session: call beginLogin');
  }
  return login;
}

/** Stores a session in place of its login. The token and the randomness are no longer needed. */
export function saveSession(store: SessionStore, session: OpenSession): void {
  store.set(SESSION, JSON.stringify(session));
  store.remove(LOGIN);
}

/** Returns the stored session, or null. @throws ZkLoginError: ZKLOGIN_STORAGE */
export function findSession(store: SessionStore): OpenSession | null {
  return readEntry<OpenSession>(store, SESSION);
}

/** Returns the stored session. @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE */
export function loadSession(store: SessionStore): OpenSession {
  const session = findSession(store);
  if (session === null) throw createNoSessionError();
  return session;
}

export function createNoSessionError(): ZkLoginError {
  return new ZkLoginError(
    'ZKLOGIN_NO_SESSION',
    'the ephemeral key pair and its proof are not in the session storage: a new key pair and a new proof are needed; call beginLogin',
  );
}

export function removeLogin(store: SessionStore): void {
  store.remove(LOGIN);
}

/** Removes the session, and a login that may have begun to renew it: nothing of the user remains. */
export function removeSession(store: SessionStore): void {
  store.remove(SESSION);
  store.remove(LOGIN);
}

function readEntry<T extends { stage: string }>(store: SessionStore, key: string): T | null {
  const text = store.get(key);
  if (text === null) return null;
  try {
    const value: T | null = JSON.parse(text);
    if (typeof value?.stage === 'string') return value;
  } catch {
    // The parser's error is dropped, since it quotes its input.
  }
  throw new ZkLoginError(
    'ZKLOGIN_STORAGE',
    `"${key}" in the session storage is not what this library wrote there: remove it`,
  );
}
