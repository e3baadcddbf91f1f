/** Shows what was minted, until the user dismisses it or something else is minted. */
import { formatAddress } from '@mysten/sui/utils';
import { ConsoleLink, type ConsolePlace } from './console_link.tsx';
import type { MintResult } from './mint.ts';

interface Props {
  readonly minted: MintResult | undefined;
  readonly console: ConsolePlace;
  readonly onDismiss: () => void;
}

export function Toast({ minted, console, onDismiss }: Props) {
  return (
    <div role="status" className="toast">
      {minted && (
        <div className="toast-content">
          <p>
            <strong>{`Minted for ${formatAddress(minted.owner)}: `}</strong>
            <ConsoleLink
              place={console}
              id={minted.objectId}
              text={`object ${formatAddress(minted.objectId)}`}
            />
            {', '}
            <ConsoleLink
              place={console}
              id={minted.digest}
              text={`transaction ${minted.digest.slice(0, 6)}…`}
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
