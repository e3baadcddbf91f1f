import { CopyButton } from '../../src/console/parts/copy_button.tsx';
import { Panel } from '../../src/console/parts/panel.tsx';
import { Tag } from '../../src/console/parts/tag.tsx';
import type { Tone } from '../../src/console/parts/verdict.tsx';
import { shortenId } from './words.ts';

/** A transaction that the user requested. */
export interface HistoryEntry {
  readonly description: string;
  /** Digest of the transaction; undefined if it was never sent. */
  readonly digest: string | undefined;
  readonly status: 'executed' | 'failed' | 'unknown';
}

const TONES: Readonly<Record<HistoryEntry['status'], Tone>> = {
  executed: 'success',
  failed: 'danger',
  unknown: 'warning',
};

interface Props {
  /** Transactions, the newest first. */
  readonly history: readonly HistoryEntry[];
  /** Description of the transaction that is being sent. */
  readonly pendingDescription: string | undefined;
}

export function HistoryPanel({ history, pendingDescription }: Props) {
  return (
    <Panel title="Transactions">
      <div role="status">
        {pendingDescription !== undefined && (
          <div className="progress">
            <span className="spinner" aria-hidden="true" />
            <span>{pendingDescription}</span>
          </div>
        )}
      </div>
      {history.length === 0 && pendingDescription === undefined && (
        <p className="subtle">None since this page was loaded.</p>
      )}
      <ol className="history">
        {history.map(({ description, digest, status }, index) => (
          <li key={history.length - index}>
            <span>{description}</span>
            <Tag tone={TONES[status]}>{status}</Tag>
            {digest !== undefined && (
              <span className="bytes">
                <code title={digest} data-digest={digest}>
                  {shortenId(digest)}
                </code>
                <CopyButton text={digest} name="the digest" />
              </span>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
