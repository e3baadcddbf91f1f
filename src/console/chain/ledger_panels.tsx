import type { ReactNode } from 'react';
import { linkTo } from '../lib/route.ts';
import { timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { Ledger } from './ledger.ts';
import type { RenderLink } from './look_up_panel.tsx';
import { shortenCall, shortenId, shortenType } from './short_names.ts';

interface Props {
  readonly ledger: Ledger;
  readonly host: string;
  /** Address of the node, for links. */
  readonly node: string;
  readonly renderLink: RenderLink;
}

/** Shows everything on the ledger of a model: transactions, objects and events, the latest first. */
export function LedgerPanels({ ledger, host, node, renderLink }: Props) {
  const { counts, transactions, objects, events } = ledger;
  const isEmpty = counts.transactions === 0;
  return (
    <>
      <Panel title="Transactions" aside={<Count total={counts.transactions} host={host} />}>
        {isEmpty && (
          <p className="subtle">
            No transactions yet. Start with npx --offline sui-enclave publish &lt;package&gt;.
          </p>
        )}
        <ol className="events">
          {transactions.map(({ digest, sender, atMs, calls, failure, gas }) => (
            <li key={digest}>
              <p className="register">
                <Tag tone={failure === null ? 'success' : 'danger'}>
                  {failure === null ? 'executed' : 'failed'}
                </Tag>
                {renderLink(digest, calls.map(shortenCall).join(', ') || 'no commands')}
              </p>
              {failure !== null && <p>{visibleText(failure, 300)}</p>}
              <p className="hint">{`${timestamp(atMs)}, ${(Number(gas) / 1e9).toFixed(4)} SUI`}</p>
              <Ids rows={{ digest, sender }} />
            </li>
          ))}
        </ol>
      </Panel>
      <Panel title="Objects" aside={<Count total={counts.objects} host={host} />}>
        <ol className="events">
          {objects.map(({ id, type, version, owner }) => (
            <li key={id}>
              <p>
                {renderLink(id, shortenType(type))}
                {/::enclave::EnclaveConfig</.test(type) && (
                  <>
                    {' '}
                    · <a href={linkTo('chain', { node, config: id })}>Look at this config</a>
                  </>
                )}
              </p>
              <p className="hint">
                {owner.startsWith('0x') ? `owned by ${shortenId(owner)}` : visibleText(owner, 66)}
              </p>
              <Ids rows={{ id, type, version, owner }} />
            </li>
          ))}
        </ol>
      </Panel>
      <Panel title="Events" aside={<Count total={counts.events} host={host} />}>
        {events.length === 0 && <p className="subtle">No events yet.</p>}
        <ol className="events">
          {events.map(({ type, digest, sender }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an event's place is its only id.
            <li key={index}>
              <p>{renderLink(digest, shortenType(type))}</p>
              <Ids rows={{ type, digest, sender }} />
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
}

/** Shows details that only some readers need, in a collapsed list. */
function Ids({ rows }: { readonly rows: Readonly<Record<string, string>> }): ReactNode {
  return (
    <details className="ids">
      <summary>ids</summary>
      {Object.entries(rows).map(([name, value]) => (
        <p key={name} className="hint">
          {name} <code>{visibleText(value, 600)}</code>
        </p>
      ))}
    </details>
  );
}

function Count({ total, host }: { readonly total: number; readonly host: string }) {
  return (
    <span className="subtle">{`${total} in the model at ${visibleText(host, 60)}; at most the latest 200 are listed`}</span>
  );
}
