import { useEffect, useState, useSyncExternalStore } from 'react';
import {
  type FlowOptions,
  LOADING,
  type LogInOptions,
  ZkLoginFlow,
  type ZkLoginProgress,
} from './zk_login_flow.ts';

/** Options of `useZkLogin`: the services and the storage of a login. */
export type ZkLoginOptions = FlowOptions;

/** State and functions that `useZkLogin` returns. */
export interface UsedZkLogin extends ZkLoginProgress {
  /**
   * Generates a key and redirects to the provider. An open session stays until the new login completes.
   */
  logIn(options: LogInOptions): void;
  /** Retries after an error, and checks whether the session has expired. */
  retry(): void;
  /** Gives up the login under way, and keeps an open session. */
  cancel(): void;
  /** Removes the key, the proof and any login under way. The state has no session afterwards. */
  logOut(): void;
}

/**
 * Manages the login of this page: redirects to the provider, and opens a session, which survives a reload.
 * Use this hook once in a page, above all components that need the session. Requests end when the component
 * is unmounted.
 *
 * Exported from `sui-enclave/react`.
 *
 * @example
 * const { step, session, error, logIn } = useZkLogin({ client, salt, prover, legacyAddress: false });
 * if (session) return <Wallet session={session} />;
 * const begin = () => logIn({ provider, clientId, redirectUri });
 * return <button disabled={step !== 'none'} onClick={begin}>Log in</button>;
 */
export function useZkLogin(options: ZkLoginOptions): UsedZkLogin {
  const [flow] = useState(() => new ZkLoginFlow(options));
  useEffect(() => {
    flow.options = options;
  });
  useEffect(() => flow.mount(), [flow]);
  const progress = useSyncExternalStore(flow.subscribe, flow.progress, () => LOADING);
  const { logIn, retry, cancel, logOut } = flow;
  return { ...progress, logIn, retry, cancel, logOut };
}
