/** One wallet: the sessions of one provider and client id, one at a time. */
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
import { built, copyBytes } from '../zklogin/bytes.ts';
import { completeLogin } from '../zklogin/complete.ts';
import { ServiceRefusedError, ZkLoginError } from '../zklogin/errors.ts';
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
import { readCancelled } from './login_cancelled.ts';
import { answerFromWindow, leaveForProvider, openLoginWindow, takeAnswer } from './login_window.ts';
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
  readonly confirmed: Confirmation;
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
    // Name and chain must not change, since the user is shown them.
    Object.freeze(this);
  }

  get accounts(): readonly WalletAccount[] {
    return this.#accounts;
  }

  /** Resumes the session or login in the storage. Called once. */
  start(): void {
    document.addEventListener('visibilitychange', this.#onVisible);
    const answer = takeAnswer(this.id);
    // Without an answer or a session, the first connect must open its window at once.
    if (answer === null && !this.#mayHaveSession()) return;
    const starting = this.#resume(answer).finally(() => {
      this.#starting = null;
    });
    // Callers that wait for `starting`, such as a connect, get the error.
    starting.catch(() => {});
    this.#starting = starting;
  }

  /** Gives up every login. The session stays in the storage. */
  stop(): void {
    document.removeEventListener('visibilitychange', this.#onVisible);
    clearInterval(this.#timer);
    this.#giveUp('the wallet was unregistered');
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
    this.#login?.abort(givenUp('another login was begun'));
    const login = new AbortController();
    this.#login = login;
    try {
      await this.#logIn(login.signal);
      return { accounts: this.#accounts };
    } catch (error) {
      throw readCancelled(error);
    } finally {
      if (this.#login === login) this.#login = null;
    }
  };

  readonly #disconnect = async (): Promise<void> => {
    this.#giveUp('the wallet was disconnected');
    removeSession(this.#store);
    this.#session = null;
    this.#show([]);
  };

  // Each value of a caller is read once: a getter could return another value than the one that was checked or
  // shown.

  readonly #signTransaction: SuiSignTransactionMethod = async ({ transaction, account, chain, signal }) => {
    return await this.#signing({ account, chain }, async (session) => {
      const unbuilt = await readTransaction({ transaction, signal }, session.address);
      const bytes = await abortable(built(unbuilt, this.#client), signal);
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
    return await this.#signing({ account, chain }, async (session) => {
      const unbuilt = await readTransaction({ transaction, signal }, session.address);
      const { sponsor } = this.#parts;
      const signed: Uint8Array[] = [];
      const { signatures, effects } = await session.execute(unbuilt, this.#client, {
        ...(sponsor && { sponsor }),
        ...(signal && { signal }),
        approve: async (bytes) => {
          signed.push(bytes);
          await this.#confirmTransaction(bytes, session, signal);
        },
      });
      const [bytes] = signed;
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
    return await this.#signing({ account, chain }, async (session) => {
      await this.#parts.confirmed({
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
  async #signing<T>(
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
      throw new ZkLoginError('ZKLOGIN_OPTION', `the account is not that of the wallet "${this.name}"`);
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
    await this.#parts.confirmed(request, signal);
  }

  #createQuestion({ address }: ZkLoginSession) {
    return { wallet: this.name, address, chain: this.chains[0] };
  }

  /** Logs in until the wallet has an account. If a window is needed, opens it before waiting for anything. */
  async #logIn(signal: AbortSignal): Promise<void> {
    if (this.#starting !== null) await abortable(this.#starting, signal);
    if (this.#accounts.length > 0 && (await abortable(this.#isOpen(), signal))) return;
    const kept = this.#keptLogin();
    const isKept = kept !== null && (await this.#canStillSign(kept, signal));
    await this.#prove(isKept ? kept : await this.#ask(signal), { signal, isKept });
  }

  /** Returns a login whose salt or proof could not be fetched, while the salt service accepts its token. */
  #keptLogin(): Login | null {
    if (findLogin(this.#store)?.stage !== 'complete') return null;
    const login = resumeLogin({ storage: this.#store });
    const { exp = 0 } = decodeJwtPayload(login.token);
    return exp * 1000 > Date.now() ? login : null;
  }

  async #canStillSign(login: Login, signal: AbortSignal): Promise<boolean> {
    return Number(await abortable(Promise.resolve(this.#currentEpoch()), signal)) <= login.maxEpoch;
  }

  /** Asks the provider, in a window or in this tab. */
  async #ask(signal: AbortSignal): Promise<Login> {
    const opened = openLoginWindow();
    let state: string | null = null;
    try {
      const url = await abortable(this.#begin(), signal);
      state = url.searchParams.get('state');
      if (opened === null) {
        if (!this.#parts.storeSurvives) {
          throw givenUp('the browser blocked the login window, and the storage may not survive a redirect');
        }
        return await leaveForProvider(this.id, { url, signal });
      }
      const answer = await answerFromWindow(opened, { url, signal });
      return await completeLogin(answer, { storage: this.#store, signal });
    } catch (error) {
      const login = findLogin(this.#store);
      // The login of a later connect is not cancelled.
      if (login?.stage === 'begun' && login.state === state) cancelLogin({ storage: this.#store });
      throw error;
    } finally {
      opened?.close();
    }
  }

  async #begin(): Promise<URL> {
    const { providerEntry, redirectUri, client, validEpochs } = this.#parts;
    const { provider, clientId } = providerEntry;
    const currentEpoch = await this.#currentEpoch();
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

  /** Turns the token into a session. The login stays in the storage if trying again may help. */
  async #prove(
    login: Login,
    { signal, isKept }: { readonly signal: AbortSignal; readonly isKept: boolean },
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
      this.#show([this.#accountOf(session)]);
    } catch (error) {
      // A foreign error may be final too, so it gets only one more attempt.
      const isOurs = error instanceof ZkLoginError;
      if (!signal.aborted && (isOurs ? isFinal(error) : isKept)) cancelLogin({ storage: this.#store });
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
      await this.#prove(login, { signal, isKept: false });
    } finally {
      await this.#isOpen();
    }
  }

  /**
   * Returns whether the session can sign, by the node's latest answer. Without an answer nothing changes,
   * since each signature asks again. Shows or removes the account accordingly.
   */
  async #isOpen(): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    const state = await session.state().catch((error: unknown) => (hasEnded(error) ? 'expired' : 'usable'));
    if (this.#session !== session) return this.#accounts.length > 0;
    const isOpen = state === 'usable';
    if (!isOpen) this.#expire(session);
    else if (this.#accounts.length === 0) this.#show([this.#accountOf(session)]);
    return isOpen;
  }

  #expire(session: ZkLoginSession): void {
    this.#show([]);
    if (this.#expired === session) return;
    this.#expired = session;
    const { onExpired } = this.#parts;
    if (onExpired) callListener(() => onExpired(session.address));
  }

  #accountOf(session: ZkLoginSession): WalletAccount {
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

  #giveUp(reason: string): void {
    this.#startup.abort(givenUp(reason));
    this.#login?.abort(givenUp(reason));
    this.#login = null;
  }
}

/** @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_SENDER; the signal's reason; whatever toJSON throws */
async function readTransaction(
  { transaction, signal }: Pick<SuiSignTransactionInput, 'transaction'> & { signal: AbortSignal | undefined },
  address: string,
): Promise<Transaction> {
  signal?.throwIfAborted();
  const text: unknown = await abortable(transaction.toJSON(), signal);
  let read: Transaction;
  try {
    // Transaction.from also reads objects, which could change.
    if (typeof text !== 'string') throw new TypeError('not a string');
    read = Transaction.from(text);
  } catch (cause) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'toJSON returned neither the JSON nor the BCS of a transaction',
      {
        cause,
      },
    );
  }
  const { sender } = read.getData();
  if (sender != null && normalizeSuiAddress(sender) !== address) {
    throw new ZkLoginError('ZKLOGIN_SENDER', `the sender of the transaction is not ${address}`);
  }
  read.setSender(address);
  return read;
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

function givenUp(reason: string): ZkLoginError {
  return new ZkLoginError('ZKLOGIN_CLOSED', `the login was given up: ${reason}`);
}

/** Returns whether the session can no longer sign. */
function hasEnded(error: unknown): boolean {
  return (
    error instanceof ZkLoginError && (error.code === 'ZKLOGIN_EXPIRED' || error.code === 'ZKLOGIN_NO_SESSION')
  );
}

/** Returns whether the same token would fail again. */
function isFinal(error: ZkLoginError): boolean {
  if (error instanceof ServiceRefusedError) {
    return error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
  }
  return ['ZKLOGIN_OPTION', 'ZKLOGIN_CLAIM', 'ZKLOGIN_PROFILE', 'ZKLOGIN_PROOF'].includes(error.code);
}
