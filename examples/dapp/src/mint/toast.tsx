/** Says what was minted, until the user dismisses it or something else is minted. */
import { formatAddress } from '@mysten/sui/utils';
import { ConsoleLink, type ConsolePlace } from './console_link.tsx';
import type { MintResult } from './mint.ts';

interface Props {
  readonly result: MintResult | undefined;
  readonly console: ConsolePlace;
  readonly onDismiss: () => void;
}

export function Toast({ result, console, onDismiss }: Props) {
  return (
    <div role="status" className="toast">
      {result && (
        <div className="toast-content">
          <p>
            <strong>{`Minted for ${formatAddress(result.owner)}: `}</strong>
            <ConsoleLink
              place={console}
              id={result.objectId}
              text={`object ${formatAddress(result.objectId)}`}
            />
            {', '}
            <ConsoleLink
              place={console}
              id={result.digest}
              text={`transaction ${result.digest.slice(0, 6)}…`}
            />
          </p>
          <button type="button" onClick={onDismiss}>
            Close
          </button>
        </div>
      )}
    </div>
  );
}
