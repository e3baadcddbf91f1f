/**
 * Where the ephemeral key, the token and the proof are kept: in the session, and nowhere else. Whoever has key
 * and proof can sign for the user until maxEpoch.
 */
import type { ZkLoginSignatureInputs } from '@mysten/sui/zklogin';
import { NoLoginError, NoSessionError, StorageError } from './errors.ts';
import type { Provider } from './providers.ts';

/** A place that ends with the session. */
export interface SessionStore {
  /** Says that nothing of it outlives the session: an object without this is refused. */
  readonly persistent: false;
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
}

/** What is known between the login's beginning and the provider's answer. */
export interface BegunLogin {
  readonly stage: 'begun';
  readonly provider: Pick<Provider, 'name' | 'issuer' | 'token'>;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly randomness: string;
  readonly maxEpoch: number;
  /** As `suiprivkey…`. */
  readonly secretKey: string;
}

/** What is known between the provider's answer and the proof. */
export interface CompleteLogin extends Omit<BegunLogin, 'stage' | 'state' | 'redirectUri'> {
  readonly stage: 'complete';
  readonly jwt: string;
}

/** What signs. */
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

/** The browser's session storage: it survives a reload, and ends with the tab. @throws StorageError outside browsers */
export function browserSession(): SessionStore {
  const storage = sessionStorageHere();
  if (!storage) {
    throw new StorageError('there is no session storage here: pass one, such as memorySession()');
  }
  return {
    persistent: false,
    get: (key) => storage.getItem(key),
    set: (key, value) => storage.setItem(key, value),
    remove: (key) => storage.removeItem(key),
  };
}

/**
 * Where a login must have been begun. Without a storage there is no place that could hold one.
 *
 * @throws NoLoginError, StorageError
 */
export function loginStore(given: SessionStore | undefined): SessionStore {
  if (given === undefined && !sessionStorageHere()) {
    throw new NoLoginError(
      'no login is under way: there is no session storage here, so give beginLogin a storage, such as memorySession(), and the same one to this call',
    );
  }
  return sessionStore(given);
}

/** A page that may not have one gets an error by asking. */
function sessionStorageHere(): Storage | null | undefined {
  try {
    return globalThis.sessionStorage;
  } catch (cause) {
    throw new StorageError(
      'the browser blocks the session storage of this page: allow its site data, or pass a storage such as memorySession()',
      { cause },
    );
  }
}

/** Ends with the process or page. */
export function memorySession(): SessionStore {
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

/** @throws StorageError for local storage, and whatever else does not say that it ends with the session */
export function sessionStore(given: SessionStore | undefined): SessionStore {
  const store = given ?? browserSession();
  if (store?.persistent !== false) {
    throw new StorageError(
      'the ephemeral key and the proof may be kept for the session only: local storage and its like are refused; leave storage out for the session storage of the browser',
    );
  }
  return store;
}

export function saveLogin(store: SessionStore, login: BegunLogin | CompleteLogin): void {
  store.set(LOGIN, JSON.stringify(login));
}

/** @throws StorageError */
export function findLogin(store: SessionStore): BegunLogin | CompleteLogin | null {
  return find<BegunLogin | CompleteLogin>(store, LOGIN);
}

/** @throws NoLoginError, StorageError */
export function loadLogin(store: SessionStore): BegunLogin | CompleteLogin {
  const login = findLogin(store);
  if (login === null) throw new NoLoginError();
  return login;
}

/** The login becomes a session: what is not needed any more (token, randomness) goes. */
export function saveSession(store: SessionStore, session: OpenSession): void {
  store.set(SESSION, JSON.stringify(session));
  store.remove(LOGIN);
}

/** @throws StorageError */
export function findSession(store: SessionStore): OpenSession | null {
  return find<OpenSession>(store, SESSION);
}

/** @throws NoSessionError, StorageError */
export function loadSession(store: SessionStore): OpenSession {
  const session = findSession(store);
  if (session === null) throw new NoSessionError();
  return session;
}

export function removeLogin(store: SessionStore): void {
  store.remove(LOGIN);
}

/** With the login that may have been begun to renew it: nothing of the user's is left. */
export function removeSession(store: SessionStore): void {
  store.remove(SESSION);
  store.remove(LOGIN);
}

function find<T extends { stage: string }>(store: SessionStore, key: string): T | null {
  const text = store.get(key);
  if (text === null) return null;
  try {
    const value: T | null = JSON.parse(text);
    if (typeof value?.stage === 'string') return value;
  } catch {
    // The parser's message quotes its input.
  }
  throw new StorageError(`"${key}" in the session storage is not what this library wrote there: remove it`);
}
