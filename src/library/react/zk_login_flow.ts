/**
 * Keeps the state of a page's zkLogin, which `useZkLogin` shows, and notifies subscribers of changes. Needs
 * no React.
 */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { type BeginOptions, beginLogin } from '../zklogin/begin.ts';
import { completeLogin } from '../zklogin/complete.ts';
import { isFinal } from '../zklogin/final_errors.ts';
import { cancelLogin, type Login, resumeLogin } from '../zklogin/login.ts';
import type { BigNumber } from '../zklogin/numbers.ts';
import type { Redirect } from '../zklogin/redirect.ts';
import { getProof, getSalt, type Proof, type ProofRequest } from '../zklogin/services.ts';
import { createEpochSource, resumeSession, type ZkLoginSession } from '../zklogin/session.ts';
import { loginStage } from '../zklogin/stage.ts';
import { findSession, removeSession, type SessionStore, sessionStore } from '../zklogin/storage.ts';

/**
 * - `loading`: the content of the storage is not known yet, for example outside browsers
 * - `none`: the user is not logged in
 * - `leaving`: a key is being generated, and the page is about to redirect to the provider
 * - `token`: the provider's answer is being checked, and its code exchanged
 * - `salt`: the salt service is being asked
 * - `proof`: the address is known, and the proof is being made
 * - `open`: there is a session that can sign
 * - `expired`: the session's last epoch has passed
 */
export type ZkLoginStep = 'loading' | 'none' | 'leaving' | 'token' | 'salt' | 'proof' | 'open' | 'expired';

/** State of a login, which a page shows. */
export interface ZkLoginProgress {
  /** The current step of the login. */
  readonly step: ZkLoginStep;
  /** The user's address, known from the step `proof` on. */
  readonly address: string | undefined;
  /** The open session, at the step `open` only. */
  readonly session: ZkLoginSession | undefined;
  /** Error that ended the step. A ZkLoginError or SuiError, unless the page's own function has thrown. */
  readonly error: Error | undefined;
}

export interface FlowOptions {
  /** Client of the network on which the session signs. */
  readonly client: ClientWithCoreApi;
  /** The URL of the salt service, for getSalt, or a function that asks the service. */
  readonly salt: string | ((token: string, options: { signal: AbortSignal }) => Promise<BigNumber>);
  /** The URL of the proving service, for getProof, or a function that asks the service. */
  readonly prover: string | ((request: ProofRequest, options: { signal: AbortSignal }) => Promise<Proof>);
  /** Option `legacyAddress` of deriveAddress, which selects how the address is derived. */
  readonly legacyAddress: boolean;
  /**
   * The provider's answer that the page's server received by form_post. Default: the answer in the page's
   * address, if there is one.
   */
  readonly answer?: Redirect;
  /**
   * Path that the address bar shows instead of the answer. Default: the same path, without query and
   * fragment.
   */
  readonly home?: string;
  /** Storage of the login. Default: the session storage of the browser. */
  readonly storage?: SessionStore;
}

/** Options of beginLogin that the page passes. */
export type LogInOptions = Omit<BeginOptions, 'currentEpoch' | 'maxEpoch' | 'storage'>;

const NOTHING = { address: undefined, session: undefined, error: undefined };
export const LOADING: ZkLoginProgress = { step: 'loading', ...NOTHING };

/**
 * Reason why work was ended. `discarded`: its result is not wanted. `interrupted`: other work continues it,
 * now or when the page is shown again.
 */
type Ending = 'discarded' | 'interrupted';

export class ZkLoginFlow {
  options: FlowOptions;
  #progress = LOADING;
  readonly #listeners = new Set<() => void>();
  #work: AbortController | undefined;
  #isMounted = false;
  /** Whether the answer was used. It is used only once, even if it is refused. */
  #hasAnswered = false;

  constructor(options: FlowOptions) {
    this.options = options;
  }

  readonly progress = (): ZkLoginProgress => this.#progress;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Continues with the content of the storage, or the provider's answer. */
  readonly mount = (): (() => void) => {
    this.#isMounted = true;
    addEventListener('pageshow', this.#onPageShow);
    if (this.#work === undefined || this.#work.signal.aborted) this.retry();
    return () => {
      this.#isMounted = false;
      removeEventListener('pageshow', this.#onPageShow);
      // React's StrictMode mounts again immediately: without this delay, a code that is being exchanged would
      // be lost.
      queueMicrotask(() => {
        if (!this.#isMounted) this.#end('interrupted');
      });
    };
  };

  readonly retry = (): void => {
    this.#start((signal) => this.#load(signal));
  };

  readonly logIn = (options: LogInOptions): void => {
    this.#end('discarded');
    this.#start(async (signal) => {
      this.#update(signal, { step: 'leaving', ...NOTHING });
      try {
        const currentEpoch = await createEpochSource(this.options.client)();
        signal.throwIfAborted();
        location.assign(beginLogin({ ...options, ...this.#storage, currentEpoch }));
      } catch (error) {
        await this.#settle(signal, toError(error));
      }
    });
  };

  readonly cancel = (): void => {
    this.#end('discarded');
    this.#start(async (signal) => {
      cancelLogin(this.#storage);
      await this.#settle(signal);
    });
  };

  readonly logOut = (): void => {
    this.#end('discarded');
    this.#work = undefined;
    this.#progress = { step: 'none', ...NOTHING };
    try {
      removeSession(sessionStore(this.options.storage));
    } catch (error) {
      this.#progress = { ...this.#progress, error: toError(error) };
    }
    this.#notify();
  };

  /**
   * Loads the state again: in the browser's cache, the page is still in the state of leaving for the
   * provider.
   */
  readonly #onPageShow = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) this.retry();
  };

  get #storage(): { readonly storage?: SessionStore } {
    const { storage } = this.options;
    return storage === undefined ? {} : { storage };
  }

  #end(reason: Ending): void {
    this.#work?.abort(reason);
  }

  #start(work: (signal: AbortSignal) => Promise<void>): void {
    this.#end('interrupted');
    const controller = new AbortController();
    this.#work = controller;
    const { signal } = controller;
    work(signal).catch((error: unknown) => this.#update(signal, { error: toError(error) }));
  }

  #update(signal: AbortSignal, change: Partial<ZkLoginProgress>): void {
    if (signal.aborted) return;
    this.#progress = { ...this.#progress, ...change };
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#update(signal, { error: undefined });
    const answer = this.#hasAnswered ? '' : (this.options.answer ?? location.href);
    const stage = loginStage(answer, this.#storage);
    if (stage === 'answered') await this.#complete(answer, signal);
    else if (stage === 'complete') await this.#prove(resumeLogin(this.#storage), signal);
    else await this.#settle(signal);
  }

  async #complete(answer: Redirect, signal: AbortSignal): Promise<void> {
    this.#hasAnswered = true;
    this.#update(signal, { step: 'token', ...NOTHING });
    // The token must not stay in the address bar.
    history.replaceState(history.state, '', this.options.home ?? location.pathname);
    let login: Login;
    try {
      login = await completeLogin(answer, { ...this.#storage, signal });
    } catch (error) {
      await this.#settle(signal, toError(error));
      return;
    }
    if (signal.reason === 'discarded') cancelLogin(this.#storage);
    signal.throwIfAborted();
    await this.#prove(login, signal);
  }

  /** Opens the session. If no further attempt can succeed, drops the login, which would hide a session. */
  async #prove(login: Login, signal: AbortSignal): Promise<void> {
    let session: ZkLoginSession;
    try {
      session = await this.#open(login, signal);
    } catch (error) {
      if (signal.aborted || !isFinal(error)) throw error;
      cancelLogin(this.#storage);
      await this.#settle(signal, toError(error));
      return;
    }
    await this.#showSession(session, signal);
  }

  /** Fetches salt and proof. */
  async #open(login: Login, signal: AbortSignal): Promise<ZkLoginSession> {
    const { client, salt: saltService, prover, legacyAddress } = this.options;
    this.#update(signal, { step: 'salt', ...NOTHING });
    const requestOptions = { signal };
    const salt = await (typeof saltService === 'string'
      ? getSalt(saltService, login.token, requestOptions)
      : saltService(login.token, requestOptions));
    signal.throwIfAborted();
    this.#update(signal, { step: 'proof', address: login.address(salt, { legacyAddress }) });
    const request = login.proofRequest(salt);
    const proof = await (typeof prover === 'string'
      ? getProof(prover, request, requestOptions)
      : prover(request, requestOptions));
    signal.throwIfAborted();
    return login.open({ salt, proof, legacyAddress, currentEpoch: createEpochSource(client) });
  }

  async #showSession(session: ZkLoginSession, signal: AbortSignal, failure?: Error): Promise<void> {
    const { address } = session;
    this.#update(signal, { address });
    const isUsable = (await session.state()) === 'usable';
    this.#update(signal, {
      step: isUsable ? 'open' : 'expired',
      address,
      session: isUsable ? session : undefined,
      error: failure,
    });
  }

  /** Shows the state after a login has ended without success: the earlier session, or none. */
  async #settle(signal: AbortSignal, failure?: Error): Promise<void> {
    // Not by loginStage, in which an unfinished login takes precedence over the session.
    if (findSession(sessionStore(this.options.storage)) !== null) {
      if (this.#progress.step !== 'open') this.#update(signal, { step: 'loading' });
      const currentEpoch = createEpochSource(this.options.client);
      await this.#showSession(resumeSession({ ...this.#storage, currentEpoch }), signal, failure);
    } else {
      this.#update(signal, { step: 'none', ...NOTHING, error: failure });
    }
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error), { cause: error });
}
