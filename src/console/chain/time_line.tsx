import type { EnclaveEvent } from 'sui-enclave/sui';
import { timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { describeEvent, findSubject } from './event_words.ts';

/** Shows the history of a config, the latest event first. */
export function TimeLine({ events }: { readonly events: readonly EnclaveEvent[] | undefined }) {
  return (
    <Panel title="Time line" aside={<span className="subtle">the latest first, at most 100</span>}>
      {events === undefined ? (
        <p className="subtle">
          This node offers no events: the panels above show the present state, without its history.
        </p>
      ) : events.length === 0 ? (
        <p className="subtle">The node has no events of this config; it may have pruned them.</p>
      ) : (
        <ol className="events">
          {events.map((event) => (
            <li key={`${event.transactionDigest} ${event.eventIndex}`}>
              <p>{describeEvent(event)}</p>
              <p className="hint">
                {formatTime(event)}by <code>{visibleText(event.sender, 66)}</code>
                {findSubject(event) !== undefined && (
                  <>
                    {' '}
                    · <code>{visibleText(findSubject(event) ?? '', 66)}</code>
                  </>
                )}
              </p>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

function formatTime(event: EnclaveEvent): string {
  if (event.name === 'EnclaveRegistered') return `attested ${timestamp(Number(event.data.registeredAtMs))}, `;
  return event.checkpoint === null ? '' : `checkpoint ${event.checkpoint}, `;
}
