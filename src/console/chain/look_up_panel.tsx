import type { ReactNode } from 'react';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { Entry, ObjectEntry, TransactionEntry } from './look_up.ts';
import { shortenCall, shortenId, shortenType } from './short_names.ts';

/** Function that makes a link, which shows an object or a transaction. */
export type RenderLink = (id: string, children: ReactNode) => ReactNode;

/** Matches an id or an address. */
const ID = /^0x[0-9a-f]{64}$/;

interface Props<E> {
  readonly entry: E;
  readonly renderLink: RenderLink;
}

/** Shows an object or a transaction, as the node describes it. */
export function LookUpPanel({ entry, renderLink }: Props<Entry>) {
  return entry.kind === 'object' ? (
    <ObjectPanel entry={entry} renderLink={renderLink} />
  ) : (
    <TransactionPanel entry={entry} renderLink={renderLink} />
  );
}

function ObjectPanel({ entry, renderLink }: Props<ObjectEntry>) {
  const { id, type, version, owner, transaction, fields } = entry;
  return (
    <Panel title={shortenType(type)} aside={<span className="subtle">object</span>}>
      <Facts
        rows={[
          ['Id', <Bytes key="id" hex={visibleText(id, 66)} name="id of the object" />],
          ['Owner', visibleText(owner, 120)],
          ['Version', visibleText(version, 20)],
          ...(transaction === null
            ? []
            : ([['Written by', renderLink(transaction, shortenId(transaction))]] as const)),
          ...fields.map(([name, value]): [string, ReactNode] => [
            visibleText(name, 80),
            ID.test(value) ? (
              <Bytes key={name} hex={value} name={visibleText(name, 80)} />
            ) : (
              visibleText(value, 300)
            ),
          ]),
          ['Type', <code key="type">{visibleText(type, 600)}</code>],
        ]}
      />
    </Panel>
  );
}

function TransactionPanel({ entry, renderLink }: Props<TransactionEntry>) {
  const { digest, sender, calls, failure, gas, changes } = entry;
  return (
    <Panel
      title={calls.map(shortenCall).join(', ') || 'No commands'}
      aside={
        <Tag tone={failure === null ? 'success' : 'danger'}>{failure === null ? 'executed' : 'failed'}</Tag>
      }
    >
      <Facts
        rows={[
          ...(failure === null ? [] : ([['Failure', visibleText(failure, 400)]] as const)),
          ['Digest', <Bytes key="digest" hex={visibleText(digest, 60)} name="digest of the transaction" />],
          ['Sender', <Bytes key="sender" hex={visibleText(sender, 66)} name="sender" />],
          ['Gas', `${(Number(gas) / 1e9).toFixed(6)} SUI`],
        ]}
      />
      <ul className="events" aria-label="Objects">
        {changes.map(({ id, change, type }) => (
          <li key={id}>
            {change}{' '}
            {change === 'deleted' ? shortenId(id) : renderLink(id, shortenType(type) || shortenId(id))}
            <span className="hint"> {shortenId(id)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
