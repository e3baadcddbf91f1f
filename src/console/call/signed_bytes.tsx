import type { SignedField } from 'sui-enclave/client';
import { toHex } from '../lib/bytes.ts';
import { visibleText } from '../lib/visible_text.ts';
import { CopyButton } from '../parts/copy_button.tsx';
import { Panel } from '../parts/panel.tsx';

interface Props {
  readonly bytes: Uint8Array;
  readonly fields: readonly SignedField[];
}

/** Maximum number of fields to show, since more would be unreadable. */
const MAX_FIELDS = 200;
const MAX_BYTES = 128;
/** Number of colours in the style sheet. */
const COLOURS = 6;

/** Shows the exact signed bytes. The bytes of a field have the same colour as its name in the list. */
export function SignedBytes({ bytes, fields }: Props) {
  const listedFields = fields.slice(0, MAX_FIELDS);
  return (
    <Panel
      title="Signed bytes"
      aside={<span className="subtle">{`IntentMessage in BCS, ${bytes.length} bytes`}</span>}
    >
      <div className="signed">
        <p>
          {listedFields.map(({ path, from, to }, index) => (
            <code key={`${path} ${from}`} data-colour={index % COLOURS} title={visibleText(path, 120)}>
              {formatHex(bytes, from, to)}
            </code>
          ))}
        </p>
        <CopyButton text={toHex(bytes)} name="signed bytes" />
      </div>
      <ol className="fields">
        {listedFields.map(({ path, type, from, to, value }, index) => (
          <li key={`${path} ${from}`}>
            <span className="swatch" data-colour={index % COLOURS} aria-hidden="true" />
            <span>
              <strong>{visibleText(path, 120)}</strong>{' '}
              <code className="subtle">{visibleText(type, 80)}</code>
            </span>
            <span className="subtle">{from === to ? 'no bytes' : `bytes ${from} to ${to - 1}`}</span>
            <span className="value">{visibleText(value, 300)}</span>
          </li>
        ))}
      </ol>
      {fields.length > listedFields.length && (
        <p className="hint">{`And ${fields.length - listedFields.length} more fields.`}</p>
      )}
    </Panel>
  );
}

function formatHex(bytes: Uint8Array, from: number, to: number): string {
  const hex = toHex(bytes.subarray(from, Math.min(to, from + MAX_BYTES)));
  return to - from > MAX_BYTES ? `${hex}…` : hex;
}
