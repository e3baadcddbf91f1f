/** Shows a problem and its remedy. */
import type { Trouble } from '../trouble.ts';

interface Props {
  readonly trouble: Trouble;
  /** Label of a button, such as "Try again", and the function that it calls. */
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
          <summary>For the operator of this page</summary>
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
