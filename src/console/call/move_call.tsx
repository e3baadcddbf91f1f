import type { SchemaType, SignedField } from 'sui-enclave/client';
import { toHex } from '../lib/bytes.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';

interface Props {
  readonly type: SchemaType;
  readonly fields: readonly SignedField[];
  readonly signature: Uint8Array;
}

/** Shows the call that would pass the answer to a contract. The page does not send it. */
export function MoveCall({ type, fields, signature }: Props) {
  const value = (name: string) => fields.find(({ path }) => path === name)?.value ?? '';
  const rows = [
    ...type.fields.map(({ name, type: moveType }) => [
      name,
      moveType,
      value(`payload.${name}`) || 'as above',
    ]),
    ['timestamp_ms', 'u64', value('timestamp_ms')],
    ['signature', 'vector<u8>', `0x${toHex(signature)}`],
    ['enclave', '&Enclave<T>', 'the registered object of the key above'],
    ['config', '&EnclaveConfig<T>', 'its config'],
    ['clock', '&Clock', '0x6'],
  ];
  return (
    <Panel title="Move call" aside={<span className="subtle">not sent by this page</span>}>
      <p>
        A function of your contract takes these arguments, in an order of its own, and passes them to{' '}
        <code>assert_signed</code>:
      </p>
      <ol className="fields">
        {rows.map(([name = '', moveType = '', text = '']) => (
          <li key={name}>
            <span className="swatch" aria-hidden="true" />
            <span>
              <strong>{visibleText(name, 120)}</strong>{' '}
              <code className="subtle">{visibleText(moveType, 80)}</code>
            </span>
            <span />
            <span className="value">{visibleText(text, 300)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
