import { linkTo } from '../lib/route.ts';
import { timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { Ledger } from './ledger.ts';

interface Props {
  readonly ledger: Ledger;
  readonly host: string;
  /** Its address, for links. */
  readonly node: string;
}

/** Everything that a model has: transactions, objects and events, the latest first. */
export function LedgerPanels({ ledger, host, node }: Props) {
  const { counts, transactions, objects, events } = ledger;
  const isEmpty = counts.transactions === 0;
  return (
    <>
      <Panel title="Transactions" aside={<Count of={counts.transactions} host={host} />}>
        {isEmpty && (
          <p className="subtle">
            Nothing was executed yet: npx --offline sui-enclave publish weather is a beginning.
          </p>
        )}
        <ol className="events">
          {transactions.map(({ digest, sender, atMs, calls, failure, gas }) => (
            <li key={digest}>
              <p className="register">
                <Tag tone={failure === null ? 'success' : 'danger'}>
                  {failure === null ? 'executed' : 'failed'}
                </Tag>
                <span>{calls.map(shortCall).join(', ') || 'no commands'}</span>
              </p>
              {failure !== null && <p>{visibleText(failure, 300)}</p>}
              <p className="hint">
                {timestamp(atMs)}, {(Number(gas) / 1e9).toFixed(4)} SUI ·{' '}
                <code>{visibleText(digest, 60)}</code> by <code>{visibleText(sender, 66)}</code>
              </p>
            </li>
          ))}
        </ol>
      </Panel>
      <Panel title="Events" aside={<Count of={counts.events} host={host} />}>
        {events.length === 0 && <p className="subtle">None yet.</p>}
        <ol className="events">
          {events.map(({ type, digest }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an event has no id but its place.
            <li key={index}>
              <p>{shortType(type)}</p>
              <p className="hint">
                <code>{visibleText(digest, 60)}</code>
              </p>
            </li>
          ))}
        </ol>
      </Panel>
      <Panel title="Objects" aside={<Count of={counts.objects} host={host} />}>
        <ol className="events">
          {objects.map(({ id, type, version, owner }) => (
            <li key={id}>
              <p>
                {shortType(type)} <span className="subtle">version {visibleText(version, 20)}</span>
              </p>
              <p className="hint">
                <code>{visibleText(id, 66)}</code> · {owner.startsWith('0x') ? 'owned by ' : ''}
                <code>{visibleText(owner, 66)}</code>
                {/::enclave::EnclaveConfig</.test(type) && (
                  <>
                    {' '}
                    · <a href={linkTo('chain', { node, config: id })}>Look at this config</a>
                  </>
                )}
              </p>
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
}

function Count({ of, host }: { readonly of: number; readonly host: string }) {
  return (
    <span className="subtle">{`${of} in the model at ${visibleText(host, 60)}; the latest 200 at most`}</span>
  );
}

/** Addresses in the middle of a name take the place of what matters. */
function shortType(type: string): string {
  const short = type.replace(/0x0*([0-9a-f]{1,6})([0-9a-f]*)::/g, (_, first: string, middle: string) =>
    middle === '' ? `0x${first}::` : `0x${first}…::`,
  );
  return visibleText(short, 200);
}

function shortCall(call: string): string {
  return call.includes('::') ? visibleText(call.split('::').slice(1).join('::'), 120) : visibleText(call, 60);
}
