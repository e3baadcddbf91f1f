import { visibleText } from '../lib/visible_text.ts';
import type { ExpectedFiles } from './expected_files.ts';

/** Tells the user that root and registers come from this page's server, or offers the server's root. */
export function DevelopmentFiles({ expected }: { readonly expected: ExpectedFiles }) {
  const { startedBy, offer, give } = expected;
  if (startedBy !== undefined) {
    return (
      <p className="hint">
        {`Root and registers are those of ${visibleText(startedBy, 40)}, which has started this enclave and serves this page. They prove nothing to anybody else.`}
      </p>
    );
  }
  if (offer.length === 0) return null;
  return (
    <div>
      <button type="button" className="ds-button" data-variant="secondary" onClick={() => give(offer)}>
        Use the development root of this machine
      </button>
    </div>
  );
}
