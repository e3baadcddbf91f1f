import { toHex } from '../lib/bytes.ts';
import { timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import { chooseLight } from './lights.ts';
import type { ChainState } from './read.ts';

/** Maximum number of enclaves to show, since more would be unreadable. */
const MAX_LISTED = 100;

/** Shows every registered enclave with a light, the newest first. */
export function EnclavesPanel({ state: { config, list, readAtMs } }: { readonly state: ChainState }) {
  const { enclaves, destroyed } = list;
  const newest = enclaves.toSorted((a, b) => Number(b.registeredAtMs - a.registeredAtMs));
  const hiddenCount = newest.length - MAX_LISTED;
  return (
    <Panel
      title="Enclaves"
      aside={<span className="subtle">{`${enclaves.length} registered, ${destroyed.length} destroyed`}</span>}
    >
      {enclaves.length === 0 && (
        <p className="subtle">
          No enclave is registered under this config. The command register_enclave registers one.
        </p>
      )}
      <ul className="cards">
        {newest.slice(0, MAX_LISTED).map((enclave) => {
          const { tone, word, why } = chooseLight(enclave, config, readAtMs);
          return (
            <li key={enclave.id}>
              <p className="register">
                <Tag tone={tone}>{word}</Tag>
                <span className="subtle">{visibleText(why)}</span>
              </p>
              <Facts
                rows={[
                  ['Enclave', <Bytes key="id" hex={enclave.id} name="id of the enclave" />],
                  ['Key', <Bytes key="key" hex={toHex(enclave.publicKey)} name="key of the enclave" />],
                  [
                    'Registered',
                    `at version ${enclave.configVersion}; attested ${timestamp(Number(enclave.registeredAtMs))}`,
                  ],
                ]}
              />
            </li>
          );
        })}
      </ul>
      {hiddenCount > 0 && <p className="hint">{`And ${hiddenCount} more, which are older.`}</p>}
    </Panel>
  );
}
