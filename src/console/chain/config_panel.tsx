import { isOverlapping } from 'sui-enclave/sui';
import { type Fields, linkTo } from '../lib/route.ts';
import { duration, timestamp } from '../lib/times.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { ChainState, Holder } from './read.ts';

interface Props {
  readonly state: ChainState;
  readonly fields: Fields;
}

/** Shows the image that contracts accept, the image's source, and the people who may change the config. */
export function ConfigPanel({ state, fields }: Props) {
  const { config, holders, readAtMs } = state;
  const { image, overlap, source } = config;
  const isInOverlap = overlap !== null && isOverlapping(config, readAtMs);
  return (
    <Panel
      title={`Config “${visibleText(config.name, 80)}”`}
      aside={
        config.isRetired ? (
          <Tag tone="danger">retired</Tag>
        ) : (
          <Tag tone={isInOverlap || config.isOpen ? 'warning' : 'success'}>
            {`version ${config.configVersion}${isInOverlap ? ', in overlap' : ''}${config.isOpen ? ', open' : ''}`}
          </Tag>
        )
      }
    >
      <Facts
        rows={[
          ['Application', <code key="application">{visibleText(config.application, 200)}</code>],
          ['PCR0', <Bytes key="pcr0" hex={image.pcr0} name="PCR0" />],
          ['PCR1', <Bytes key="pcr1" hex={image.pcr1} name="PCR1" />],
          ['PCR2', <Bytes key="pcr2" hex={image.pcr2} name="PCR2" />],
          ...(isInOverlap
            ? ([
                [
                  'Also accepted',
                  `version ${config.configVersion - 1n}, until ${timestamp(Number(overlap.untilMs))}`,
                ],
                [
                  'Its PCR2',
                  <Bytes key="old" hex={overlap.image.pcr2} name="PCR2 of the previous version" />,
                ],
              ] as const)
            : []),
          [
            'Source',
            source === null
              ? 'not named'
              : `${visibleText(source.url)} at ${visibleText(source.commit, 64)}, folder ${visibleText(source.folder, 100) || '/'}, framework ${visibleText(source.frameworkVersion, 50)}: as the admin states; this has not been checked`,
          ],
          [
            'Keys',
            config.maxKeyAgeMs === null
              ? 'of any age'
              : `at most ${duration(Number(config.maxKeyAgeMs))} old`,
          ],
          [
            'Registration',
            config.isOpen
              ? 'open: anyone may register enclaves of the image, on any host'
              : 'by the capability and the registrars',
          ],
          ...holders.map((holder): [string, React.ReactNode] => [
            holder.role === 'capability' ? 'Changed by' : `Registrar ${holder.id.slice(0, 8)}…`,
            <Owner key={holder.id} holder={holder} />,
          ]),
          ['Package', <Bytes key="package" hex={config.enclavePackage} name="package" />],
        ]}
      />
      <p className="hint">
        {`As ${visibleText(state.node.host, 60)} said at ${timestamp(readAtMs)}.`}{' '}
        <a href={linkTo('enclave', { ...fields, config: config.id, node: state.node.href })}>
          Compare an enclave with this config
        </a>
      </p>
    </Panel>
  );
}

function Owner({ holder: { owner, role } }: { readonly holder: Holder }) {
  const roleText = role === 'capability' ? 'holder of the capability' : 'holder of the registrar';
  if ('words' in owner) return <>{visibleText(owner.words)}</>;
  return <Bytes hex={owner.address} name={roleText} />;
}
