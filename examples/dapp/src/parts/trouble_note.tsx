/** What went wrong, and what to do. */
import type { Trouble } from '../trouble.ts';

interface Props {
  readonly trouble: Trouble;
  /** In words, such as "Try again", with what it does. */
  readonly action?: readonly [words: string, act: () => void];
}

export function TroubleNote({ trouble: { kind, title, text, advice, detail }, action }: Props) {
  return (
    <div className={`note ${kind}`} role="alert">
      <h3>{title}</h3>
      <p>{text}</p>
      <p>
        <strong>What to do:</strong> {advice}
      </p>
      {detail !== undefined && (
        <details>
          <summary>For whoever runs this page</summary>
          <p className="mono">{detail}</p>
        </details>
      )}
      {action && (
        <button type="button" onClick={action[1]}>
          {action[0]}
        </button>
      )}
    </div>
  );
}
