/** A wallet for one provider and client id, with one session at a time. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { normalizeSuiAddress, toBase64 } from '@mysten/sui/utils';
import {
  type IdentifierString,
  StandardConnect,
  type StandardConnectMethod,
  StandardDisconnect,
  type StandardDisconnectFeature,
  StandardEvents,
  type StandardEventsListeners,
  type StandardEventsOnMethod,
  SuiSignAndExecuteTransaction,
  type SuiSignAndExecuteTransactionMethod,
  SuiSignPersonalMessage,
  type SuiSignPersonalMessageMethod,
  SuiSignTransaction,
  type SuiSignTransactionInput,
  type SuiSignTransactionMethod,
  type SuiWalletFeatures,
  type Wallet,
  type WalletAccount,
  type WalletIcon,
} from '@mysten/wallet-standard';
import { SuiError } from '../sui/errors.ts';
import { abortable } from '../waiting.ts';
import { beginLogin } from '../zklogin/begin.ts';
import { buildBytes, copyBytes } from '../zklogin/bytes.ts';
import { completeLogin } from '../zklogin/complete.ts';
import { ZkLoginError } from '../zklogin/errors.ts';
import { isFinal } from '../zklogin/final_errors.ts';
import { decodeJwtPayload } from '../zklogin/jwt.ts';
import { cancelLogin, type Login, resumeLogin } from '../zklogin/login.ts';
import { getProof, getSalt } from '../zklogin/services.ts';
import {
  createEpochSource,
  type EpochSource,
  resumeSession,
  type ZkLoginSession,
} from '../zklogin/session.ts';
import { findLogin, findSession, removeSession, type SessionStore } from '../zklogin/storage.ts';
import type { Confirmation } from './confirm.ts';
import { toLoginCancelled } from './login_cancelled.ts';
import { leaveForProvider, openLoginWindow, receiveAnswer, takeAnswer } from './login_window.ts';
import { findNetwork, type RegisterOptions, type WalletProvider } from './options.ts';

const ACCOUNT_FEATURES = Object.freeze([
  SuiSignTransaction,
  SuiSignAndExecuteTransaction,
  SuiSignPersonalMessage,
] as const);

/** Interval at which the epoch is read while there is an account, in milliseconds. An epoch takes a day. */
const EXPIRY_CHECK_MS = 60_000;

type Listener = StandardEventsListeners['change'];

export interface WalletParts extends Omit<RegisterOptions, 'providers' | 'confirm' | 'storage'> {
  readonly id: string;
  readonly name: string;
  readonly icon: WalletIcon;
  readonly providerEntry: WalletProvider;
  /** The wallet's own part of the storage. */
  readonly store: SessionStore;
  /** Whether the store survives a redirect. */
  readonly storeSurvives: boolean;
  readonly askUser: Confirmation;
}

/** A wallet of the standard, with its features. */
export type RegisteredWallet = Wallet & {
  readonly id: string;
  readonly features: SuiWalletFeatures & StandardDisconnectFeature;
};

export class ZkLoginWallet implements RegisteredWallet {
  readonly version = '1.0.0';
  readonly id: string;
  readonly name: string;
  readonly icon: WalletIcon;
  readonly chains: readonly [IdentifierString];
  readonly features: RegisteredWallet['features'];
  readonly #parts: WalletParts;
  readonly #client: ClientWithCoreApi;
  readonly #store: SessionStore;
  readonly #currentEpoch: EpochSource;
  readonly #listeners = new Set<Listener>();
  #accounts: readonly WalletAccount[] = [];
  /** The session. An expired session is kept too, so that a signature is refused for this reason. */
  #session: ZkLoginSession | null = null;
  /** The latest session for which `onExpired` was called. */
  #expired: ZkLoginSession | null = null;
  /** The login of the latest connect. */
  #login: AbortController | null = null;
  /**
   * Work that began when the page was loaded: a redirect's answer, or the check whether the session is open.
   */
  #starting: Promise<void> | null = null;
  readonly #startup = new AbortController();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(parts: WalletParts) {
    this.id = parts.id;
    this.name = parts.name;
    this.icon = parts.icon;
    this.chains = Object.freeze([`sui:${parts.client.network}`] as const);
    this.#parts = parts;
    this.#client = parts.client;
    this.#store = parts.store;
    this.#currentEpoch = createEpochSource(parts.client);
    this.features = {
      [StandardConnect]: { version: '1.0.0', connect: this.#connect },
      [StandardDisconnect]: { version: '1.0.0', disconnect: this.#disconnect },
      [StandardEvents]: { version: '1.0.0', on: this.#on },
      [SuiSignTransaction]: { version: '2.0.0', signTransaction: this.#signTransaction },
      [SuiSignAndExecuteTransaction]: {
        version: '2.0.0',
        signAndExecuteTransaction: this.#signAndExecuteTransaction,
      },
      [SuiSignPersonalMessage]: { version: '1.1.0', signPersonalMessage: this.#signPersonalMessage },
    };
    // Name and chain must not change, since the user sees them.
    Object.freeze(this);
  }

  get accounts(): readonly WalletAccount[] {
    return this.#accounts;
  }

  /** Resumes the session or login in the storage. Called once. */
  start(): void {
    document.addEventListener('visibilitychange', this.#onVisible);
    const answer = takeAnswer(this.id);
    // Without an answer or a session, the first connect must open its window immediately.
    if (answer === null && !this.#mayHaveSession()) return;
    const starting = this.#resume(answer).finally(() => {
      this.#starting = null;
    });
    // Callers that wait for `starting`, such as a connect, get the error.
    starting.catch(() => {});
    this.#starting = starting;
  }

  /** Cancels every login. The session stays in the storage. */
  stop(): void {
    document.removeEventListener('visibilitychange', this.#onVisible);
    clearInterval(this.#timer);
    this.#cancelLogins('the wallet was unregistered');
  }

  readonly #on: StandardEventsOnMethod = (event, listener) => {
    if (event !== 'change') return () => {};
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  readonly #connect: StandardConnectMethod = async ({ silent = false } = {}) => {
    if (silent) {
      await this.#starting?.catch(() => {});
      await this.#isOpen();
      return { accounts: this.#accounts };
    }
    this.#login?.abort(createClosedError('another login began'));
    const login = new AbortController();
    this.#login = login;
    try {
      await this.#logIn(login.signal);
      return { accounts: this.#accounts };
    } catch (error) {
      throw toLoginCancelled(error);
    } finally {
      if (this.#login === login) this.#login = null;
    }
  };

  readonly #disconnect = async (): Promise<void> => {
    this.#cancelLogins('the wallet was disconnected');
    removeSession(this.#store);
    this.#session = null;
    this.#show([]);
  };

  // Each value of a caller is read once: a getter could return a value other than the one that was checked or
  // shown.

  readonly #signTransaction: SuiSignTransactionMethod = async ({ transaction, account, chain, signal }) => {
    return await this.#withSession({ account, chain }, async (session) => {
      const unbuilt = await readTransaction({ transaction, signal }, session.address);
      const bytes = await abortable(buildBytes(unbuilt, this.#client), signal);
      await this.#confirmTransaction(bytes, session, signal);
      return await session.signTransaction(bytes);
    });
  };

  readonly #signAndExecuteTransaction: SuiSignAndExecuteTransactionMethod = async ({
    transaction,
    account,
    chain,
    signal,
  }) => {
    return await this.#withSession({ account, chain }, async (session) => {
      const unbuilt = await readTransaction({ transaction, signal }, session.address);
      const { sponsor } = this.#parts;
      const approvedBytes: Uint8Array[] = [];
      const { signatures, effects } = await session.execute(unbuilt, this.#client, {
        ...(sponsor && { sponsor }),
        ...(signal && { signal }),
        approve: async (bytes) => {
          approvedBytes.push(bytes);
          await this.#confirmTransaction(bytes, session, signal);
        },
      });
      const [bytes] = approvedBytes;
      const [signature] = signatures;
      if (bytes === undefined || signature === undefined || effects.bcs === null) {
        throw new SuiError('SUI_NODE_ANSWER', 'the node did not return the signature or the effects');
      }
      const digest = TransactionDataBuilder.getDigestFromBytes(bytes);
      return { bytes: toBase64(bytes), signature, digest, effects: toBase64(effects.bcs) };
    });
  };

  readonly #signPersonalMessage: SuiSignPersonalMessageMethod = async ({ message, account, chain }) => {
    const bytes = copyBytes('message', message);
    return await this.#withSession({ account, chain }, async (session) => {
      await this.#parts.askUser({
        kind: 'message',
        ...this.#createQuestion(session),
        message: bytes.slice(),
      });
      return await session.signPersonalMessage(bytes);
    });
  };

  /**
   * Calls `sign` with the open session of the account.
   *
   * @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_OPTION for another account or chain, ZKLOGIN_EXPIRED,
   *   after which there is no account; the errors of `sign`
   */
  async #withSession<T>(
    { account, chain }: { readonly account: WalletAccount; readonly chain: IdentifierString | undefined },
    sign: (session: ZkLoginSession) => Promise<T>,
  ): Promise<T> {
    const session = this.#session;
    if (session === null) {
      throw new ZkLoginError(
        'ZKLOGIN_NO_SESSION',
        `the wallet "${this.name}" is not connected: call connect`,
      );
    }
    if (account?.address !== session.address) {
      throw new ZkLoginError(
        'ZKLOGIN_OPTION',
        `the account does not belong to the session of the wallet "${this.name}"`,
      );
    }
    if (chain !== undefined && chain !== this.chains[0]) {
      throw new ZkLoginError('ZKLOGIN_OPTION', `the wallet "${this.name}" signs for ${this.chains[0]} only`);
    }
    try {
      if ((await session.state()) === 'expired') {
        throw new ZkLoginError('ZKLOGIN_EXPIRED', 'the session has expired: call connect to log in again');
      }
      return await sign(session);
    } catch (error) {
      if (hasEnded(error) && this.#session === session) this.#expire(session);
      throw error;
    }
  }

  async #confirmTransaction(
    bytes: Uint8Array,
    session: ZkLoginSession,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const transaction = Transaction.from(bytes).getData();
    const request = {
      kind: 'transaction',
      ...this.#createQuestion(session),
      bytes: bytes.slice(),
      transaction,
    } as const;
    await this.#parts.askUser(request, signal);
  }

  #createQuestion({ address }: ZkLoginSession) {
    return { wallet: this.name, address, chain: this.chains[0] };
  }

  /**
   * Logs in, unless the session is open. If the storage has neither a session nor a login, this opens the
   * window immediately, within the user's click.
   */
  async #logIn(signal: AbortSignal): Promise<void> {
    if (this.#starting !== null) await abortable(this.#starting, signal);
    if (this.#accounts.length > 0 && (await abortable(this.#isOpen(), signal))) return;
    const storedLogin = this.#findStoredLogin();
    const isRetry = storedLogin !== null && (await this.#canStillSign(storedLogin, signal));
    await this.#prove(isRetry ? storedLogin : await this.#logInAtProvider(signal), { signal, isRetry });
  }

  /**
   * Returns a stored login whose salt or proof could not be fetched, unless its token has expired. Removes a
   * login that can't be read.
   */
  #findStoredLogin(): Login | null {
    try {
      if (findLogin(this.#store)?.stage !== 'complete') return null;
      const login = resumeLogin({ storage: this.#store });
      const { exp = 0 } = decodeJwtPayload(login.token);
      return exp * 1000 > Date.now() ? login : null;
    } catch {
      // Otherwise, each connect would fail in the same way. A new login needs nothing of this one.
      cancelLogin({ storage: this.#store });
      return null;
    }
  }

  async #canStillSign(login: Login, signal: AbortSignal): Promise<boolean> {
    return Number(await abortable(Promise.resolve(this.#currentEpoch()), signal)) <= login.maxEpoch;
  }

  /** Sends the user to the provider, in a window or in this tab, and waits for the token. */
  async #logInAtProvider(signal: AbortSignal): Promise<Login> {
    const loginWindow = openLoginWindow();
    let state: string | null = null;
    try {
      const url = await abortable(this.#begin(signal), signal);
      state = url.searchParams.get('state');
      if (loginWindow === null) {
        if (!this.#parts.storeSurvives) {
          throw createClosedError(
            'the browser blocked the login window, and the storage may not survive a redirect',
          );
        }
        return await leaveForProvider(this.id, { url, signal });
      }
      const answer = await receiveAnswer(loginWindow, { url, signal });
      return await completeLogin(answer, { storage: this.#store, signal });
    } catch (error) {
      const login = findLogin(this.#store);
      // The login of a later connect is not cancelled.
      if (login?.stage === 'begun' && login.state === state) cancelLogin({ storage: this.#store });
      throw error;
    } finally {
      loginWindow?.close();
    }
  }

  /** Begins a login, unless the signal aborts while the node returns the epoch. */
  async #begin(signal: AbortSignal): Promise<URL> {
    const { providerEntry, redirectUri, client, validEpochs } = this.#parts;
    const { provider, clientId } = providerEntry;
    const currentEpoch = await this.#currentEpoch();
    // The storage may be empty by now, or hold the login of a later connect.
    signal.throwIfAborted();
    return new URL(
      beginLogin({
        provider,
        clientId,
        redirectUri,
        currentEpoch,
        storage: this.#store,
        ...findNetwork(client),
        ...(validEpochs !== undefined && { validEpochs }),
      }),
    );
  }

  /** Fetches salt and proof, and opens a session. If a retry may succeed, the login stays in the storage. */
  async #prove(
    login: Login,
    { signal, isRetry }: { readonly signal: AbortSignal; readonly isRetry: boolean },
  ): Promise<void> {
    const { salt: saltService, prover, legacyAddress } = this.#parts;
    try {
      const salt =
        typeof saltService === 'string'
          ? await getSalt(saltService, login.token, { signal })
          : await abortable(saltService(login.token, { signal }), signal);
      const request = login.proofRequest(salt);
      const proof =
        typeof prover === 'string'
          ? await getProof(prover, request, { signal })
          : await abortable(prover(request, { signal }), signal);
      const session = login.open({ salt, proof, legacyAddress, currentEpoch: this.#currentEpoch });
      this.#session = session;
      this.#show([this.#createAccount(session)]);
    } catch (error) {
      // A foreign error may be final too, so it gets only one more attempt.
      const isOurs = error instanceof ZkLoginError;
      if (!signal.aborted && (isOurs ? isFinal(error) : isRetry)) cancelLogin({ storage: this.#store });
      throw error;
    }
  }

  #mayHaveSession(): boolean {
    try {
      return findSession(this.#store) !== null;
    } catch {
      return true;
    }
  }

  async #resume(answer: string | null): Promise<void> {
    const { signal } = this.#startup;
    const storage = this.#store;
    if (findSession(storage) !== null) {
      this.#session = resumeSession({ currentEpoch: this.#currentEpoch, storage });
    }
    try {
      if (answer === null) return;
      const login = await completeLogin(answer, { storage, signal }).catch((error: unknown) => {
        cancelLogin({ storage });
        throw error;
      });
      await this.#prove(login, { signal, isRetry: false });
    } finally {
      await this.#isOpen();
    }
  }

  /**
   * Returns whether the session can sign, and shows or removes the account accordingly. If the node does not
   * answer, the session counts as open, since each signature asks the node again.
   */
  async #isOpen(): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    const state = await session.state().catch((error: unknown) => (hasEnded(error) ? 'expired' : 'usable'));
    if (this.#session !== session) return this.#accounts.length > 0;
    const isOpen = state === 'usable';
    if (!isOpen) this.#expire(session);
    else if (this.#accounts.length === 0) this.#show([this.#createAccount(session)]);
    return isOpen;
  }

  #expire(session: ZkLoginSession): void {
    this.#show([]);
    if (this.#expired === session) return;
    this.#expired = session;
    const { onExpired } = this.#parts;
    if (onExpired) callListener(() => onExpired(session.address));
  }

  #createAccount(session: ZkLoginSession): WalletAccount {
    // The key has the flag of its scheme, as dapp-kit expects.
    const publicKey = session.getPublicKey().toSuiBytes();
    return Object.freeze({
      address: session.address,
      get publicKey() {
        return publicKey.slice();
      },
      chains: this.chains,
      features: ACCOUNT_FEATURES,
    });
  }

  #show(accounts: readonly WalletAccount[]): void {
    clearInterval(this.#timer);
    if (accounts.length > 0) this.#timer = setInterval(() => void this.#isOpen(), EXPIRY_CHECK_MS);
    if (accounts.length === 0 && this.#accounts.length === 0) return;
    this.#accounts = accounts;
    for (const listener of [...this.#listeners]) callListener(() => listener({ accounts }));
  }

  readonly #onVisible = (): void => {
    if (document.visibilityState === 'visible' && this.#accounts.length > 0) void this.#isOpen();
  };

  #cancelLogins(reason: string): void {
    this.#startup.abort(createClosedError(reason));
    this.#login?.abort(createClosedError(reason));
    this.#login = null;
  }
}

/**
 * Reads a dapp's transaction, with the wallet's address as its sender.
 *
 * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_SENDER; the signal's reason; any error that toJSON throws
 */
async function readTransaction(
  { transaction, signal }: Pick<SuiSignTransactionInput, 'transaction'> & { signal: AbortSignal | undefined },
  address: string,
): Promise<Transaction> {
  signal?.throwIfAborted();
  const text: unknown = await abortable(transaction.toJSON(), signal);
  let parsed: Transaction;
  try {
    // Transaction.from also reads objects, which could change.
    if (typeof text !== 'string') throw new TypeError('not a string');
    parsed = Transaction.from(text);
  } catch (cause) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'toJSON returned neither the JSON nor the BCS of a transaction',
      {
        cause,
      },
    );
  }
  const { sender } = parsed.getData();
  if (sender != null && normalizeSuiAddress(sender) !== address) {
    throw new ZkLoginError('ZKLOGIN_SENDER', `the sender of the transaction is not ${address}`);
  }
  parsed.setSender(address);
  return parsed;
}

/**
 * Reports a listener's error as uncaught, as every event target does, so that it does not stop other
 * listeners.
 */
function callListener(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function createClosedError(reason: string): ZkLoginError {
  return new ZkLoginError('ZKLOGIN_CLOSED', `the login was given up: ${reason}`);
}

/** Returns whether the error means that the session can no longer sign. */
function hasEnded(error: unknown): boolean {
  return (
    error instanceof ZkLoginError && (error.code === 'ZKLOGIN_EXPIRED' || error.code === 'ZKLOGIN_NO_SESSION')
  );
}
