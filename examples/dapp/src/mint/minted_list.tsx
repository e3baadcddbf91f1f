/** Lists the objects of the connected account, including the one that was minted last. */
import { formatAddress } from '@mysten/sui/utils';
import { useEffect } from 'react';
import { timeText } from '../enclave/reading_panel.tsx';
import { Facts } from '../parts/facts.tsx';
import { TroubleNote } from '../parts/trouble_note.tsx';
import { otherTrouble } from '../trouble.ts';
import { ConsoleLink, type ConsolePlace } from './console_link.tsx';
import type { OwnedObjects } from './owned.ts';

interface Props {
  readonly owned: OwnedObjects;
  readonly console: ConsolePlace;
  /** Id of the object that this page minted last. The page scrolls to it. */
  readonly latestId: string | undefined;
}

const elementId = (objectId: string) => `object-${objectId}`;

export function MintedList({ owned: { objects, error, refresh }, console, latestId }: Props) {
  const isListed = objects.some(({ id }) => id === latestId);
  useEffect(() => {
    if (!isListed || latestId === undefined) return;
    const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
    document.getElementById(elementId(latestId))?.scrollIntoView({ block: 'center', behavior });
  }, [isListed, latestId]);
  if (error !== undefined) {
    return <TroubleNote trouble={otherTrouble(error)} action={['Read your objects again', refresh]} />;
  }
  return (
    <section
      aria-labelledby="minted-title"
      aria-live="polite"
      className={objects.length === 0 ? 'hidden' : undefined}
    >
      <h2 id="minted-title">Your objects on Sui</h2>
      <ul className="cards">
        {objects.map(({ id, name, owner, location, celsius, timestampMs, digest }) => (
          <li key={id} id={elementId(id)} className={id === latestId ? 'panel card latest' : 'panel card'}>
            <p className="degrees">{celsius}</p>
            <h3>{location}</h3>
            <Facts
              facts={[
                ['Type', name],
                ['Measured', timeText(timestampMs)],
                ['Object', <ConsoleLink key="object" place={console} id={id} text={formatAddress(id)} />],
                ['Owner', formatAddress(owner)],
                ...(digest === null
                  ? []
                  : ([
                      [
                        'Transaction',
                        <ConsoleLink
                          key="transaction"
                          place={console}
                          id={digest}
                          text={`${digest.slice(0, 6)}…${digest.slice(-4)}`}
                        />,
                      ],
                    ] as const)),
              ]}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
