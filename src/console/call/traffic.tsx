import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { ObservedRequest } from './observed.ts';

interface Props {
  readonly requests: readonly ObservedRequest[];
  readonly isSealed: boolean;
}

/** Shows the part of the call that the host could see, request by request. */
export function Traffic({ requests, isSealed }: Props) {
  return (
    <Panel
      title="What the host saw"
      aside={
        isSealed ? <Tag tone="success">only sizes</Tag> : <Tag tone="warning">everything, unencrypted</Tag>
      }
    >
      {requests.length === 0 && <p className="subtle">No request reached the host.</p>}
      <ol className="events">
        {groupByPath(requests).map((pathRequests) => (
          <PathTraffic key={pathRequests[0]?.path} requests={pathRequests} />
        ))}
      </ol>
    </Panel>
  );
}

/** Groups requests by path, since a client repeats failed requests, and may attest an enclave again. */
function groupByPath(requests: readonly ObservedRequest[]): ObservedRequest[][] {
  const groups = new Map<string, ObservedRequest[]>();
  for (const observed of requests) {
    const path = observed.path.replace(/\?.*$/s, '');
    groups.set(path, [...(groups.get(path) ?? []), { ...observed, path }]);
  }
  return [...groups.values()];
}

function PathTraffic({ requests }: { readonly requests: readonly ObservedRequest[] }) {
  const lastRequest = requests.at(-1);
  if (!lastRequest) return null;
  const sum = (count: (observed: ObservedRequest) => number) =>
    requests.reduce((total, observed) => total + count(observed), 0);
  const times = requests.length === 1 ? '' : `${requests.length} times, `;
  const isAttestation = lastRequest.path === '/get_attestation';
  return (
    <li>
      <p>
        <code>{visibleText(lastRequest.path, 120)}</code>{' '}
        <span className="subtle">
          {`${times}${sum(({ sent }) => sent)} bytes sent, ${sum(({ received }) => received)} received`}
        </span>
      </p>
      {isAttestation && <p className="hint">This is the attestation document, which is public.</p>}
      {lastRequest.isSealed && (
        <p className="hint">
          This request is sealed: neither the request nor the answer can be read on the way.
        </p>
      )}
      {lastRequest.request !== '' && (
        <p className="hint">
          request <code>{visibleText(lastRequest.request, 400)}</code>
        </p>
      )}
      {lastRequest.answer !== '' && !isAttestation && (
        <p className="hint">
          answer <code>{visibleText(lastRequest.answer, 400)}</code>
        </p>
      )}
    </li>
  );
}
