/** Shows an open session: the account, a form to send SUI, an enclave to ask, and the transactions. */
import type { Transaction } from '@mysten/sui/transactions';
import { useState } from 'react';
import type { UsedZkLogin } from 'sui-enclave/react';
import type { ZkLoginSession } from 'sui-enclave/zklogin';
import { useJob } from '../../src/console/lib/use_job.ts';
import { AccountPanel } from './account_panel.tsx';
import { EnclavePanel } from './enclave_panel.tsx';
import { type HistoryEntry, HistoryPanel } from './history_panel.tsx';
import { findCode, Problem } from './problem.tsx';
import { SendPanel } from './send_panel.tsx';
import { Steps } from './steps.tsx';
import { client } from './surroundings.ts';
import { useBalance } from './use_balance.ts';

/** Result of a session's `execute`. */
export type Executed = Awaited<ReturnType<ZkLoginSession['execute']>>;

/** The latest failure, which the page shows at the top. */
export interface Failures {
  /** Removes the failure when another attempt begins. */
  clear(): void;
  add(title: string, error: unknown): void;
}

/** Signs and sends transactions, one at a time, and adds each to the history. */
export interface Sender {
  readonly isBusy: boolean;
  send(
    description: string,
    transaction: Transaction,
    onExecuted?: (executed: Executed) => Promise<void> | void,
  ): void;
}

interface Props {
  readonly session: ZkLoginSession;
  readonly login: UsedZkLogin;
}

export function WalletView({ session, login }: Props) {
  const { address } = session;
  const [history, setHistory] = useState<readonly HistoryEntry[]>([]);
  const [failure, setFailure] = useState<{ readonly title: string; readonly error: unknown }>();
  const balance = useBalance(client, address);
  const addToHistory = (entry: HistoryEntry) => setHistory((history) => [entry, ...history]);
  const failures: Failures = {
    clear: () => setFailure(undefined),
    add(title, error) {
      setFailure({ title, error });
      // The page then shows that the session has expired.
      if (findCode(error) === 'ZKLOGIN_EXPIRED') login.retry();
    },
  };
  const job = useJob((error) => failures.add('The transaction has failed', error));
  const sender: Sender = {
    isBusy: job.step !== undefined,
    send(description, transaction, onExecuted) {
      // A second job would replace the first, whose transaction would still be sent.
      if (job.step !== undefined) return;
      failures.clear();
      job.start(async ({ step }) => {
        step(description);
        try {
          const executed = await session.execute(transaction, client);
          addToHistory({ description, digest: executed.digest, status: 'executed' });
          await onExecuted?.(executed);
        } catch (error) {
          const digest: unknown = error instanceof Error ? Reflect.get(error, 'digest') : undefined;
          const status = findCode(error) === 'SUI_UNKNOWN_OUTCOME' ? 'unknown' : 'failed';
          addToHistory({ description, digest: typeof digest === 'string' ? digest : undefined, status });
          throw error;
        } finally {
          balance.refresh();
        }
      });
    },
  };
  const parts = { session, sender, balance, failures };
  return (
    <>
      <h1>Wallet</h1>
      {login.error !== undefined && <Problem title="The login has stopped" error={login.error} />}
      {failure !== undefined && <Problem {...failure} />}
      <div className="columns">
        <div className="stack">
          <AccountPanel {...parts} onLogOut={login.logOut} />
          <SendPanel {...parts} />
        </div>
        <div className="stack">
          <EnclavePanel {...parts} />
          <HistoryPanel history={history} pendingDescription={job.step} />
        </div>
      </div>
      <details className="panel">
        <summary>How this session was created</summary>
        <Steps {...login} />
      </details>
    </>
  );
}
