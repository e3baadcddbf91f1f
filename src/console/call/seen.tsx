import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { Observed } from './observed.ts';

interface Props {
  readonly seen: readonly Observed[];
  readonly isSealed: boolean;
}

/** Shows the part of the call that the host could see, request by request. */
export function Seen({ seen, isSealed }: Props) {
  return (
    <Panel
      title="What the host saw"
      aside={
        isSealed ? (
          <Tag tone="success">nothing but sizes</Tag>
        ) : (
          <Tag tone="warning">everything, in clear</Tag>
        )
      }
    >
      {seen.length === 0 && <p className="subtle">No request reached it.</p>}
      <ol className="events">
        {byPath(seen).map((requests) => (
          <SeenRequests key={requests[0]?.path} requests={requests} />
        ))}
      </ol>
    </Panel>
  );
}

/** Groups requests by path into one entry each, since a client repeats failed requests, and attests again. */
function byPath(seen: readonly Observed[]): Observed[][] {
  const groups = new Map<string, Observed[]>();
  for (const observed of seen) {
    const path = observed.path.replace(/\?.*$/s, '');
    groups.set(path, [...(groups.get(path) ?? []), { ...observed, path }]);
  }
  return [...groups.values()];
}

function SeenRequests({ requests }: { readonly requests: readonly Observed[] }) {
  const last = requests.at(-1);
  if (!last) return null;
  const sum = (count: (observed: Observed) => number) =>
    requests.reduce((total, observed) => total + count(observed), 0);
  const times = requests.length === 1 ? '' : `${requests.length} times, `;
  const isAttestation = last.path === '/get_attestation';
  return (
    <li>
      <p>
        <code>{visibleText(last.path, 120)}</code>{' '}
        <span className="subtle">
          {`${times}${sum(({ sent }) => sent)} bytes sent, ${sum(({ received }) => received)} received`}
        </span>
      </p>
      {isAttestation && <p className="hint">The attestation document, which is public.</p>}
      {last.isSealed && (
        <p className="hint">Sealed: neither the request nor the answer can be read on the way.</p>
      )}
      {last.request !== '' && (
        <p className="hint">
          request <code>{visibleText(last.request, 400)}</code>
        </p>
      )}
      {last.answer !== '' && !isAttestation && (
        <p className="hint">
          answer <code>{visibleText(last.answer, 400)}</code>
        </p>
      )}
    </li>
  );
}
