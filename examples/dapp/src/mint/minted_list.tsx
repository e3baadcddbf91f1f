/** The objects that this page has minted, as the chain has them. */
import { formatAddress } from '@mysten/sui/utils';
import { timeText } from '../enclave/reading_panel.tsx';
import { Facts } from '../parts/facts.tsx';
import type { Minted } from './mint.ts';

export function MintedList({ minted }: { readonly minted: readonly Minted[] }) {
  return (
    <section
      aria-labelledby="minted-title"
      aria-live="polite"
      className={minted.length === 0 ? 'hidden' : undefined}
    >
      <h2 id="minted-title">Your objects on Sui</h2>
      <ul className="cards">
        {minted.map(({ id, name, owner, location, celsius, timestampMs, digest }) => (
          <li key={id} className="panel card">
            <p className="degrees">{celsius}</p>
            <h3>{location}</h3>
            <Facts
              facts={[
                ['Type', name],
                ['Measured', timeText(timestampMs)],
                ['Object', formatAddress(id)],
                ['Owner', formatAddress(owner)],
                ['Transaction', `${digest.slice(0, 6)}…${digest.slice(-4)}`],
              ]}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
