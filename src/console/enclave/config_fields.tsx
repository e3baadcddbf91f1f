import { useState } from 'react';
import type { Fields } from '../lib/route.ts';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { setField } from '../lib/use_route.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Progress } from '../parts/progress.tsx';
import { TextField } from '../parts/text_field.tsx';
import type { RecognizedFile } from './files.ts';

interface Props {
  readonly fields: Fields;
  readonly onFile: (file: RecognizedFile) => void;
}

/** Gets the expected registers from a config on Sui, through the node that the user names. */
export function ConfigFields({ fields, onFile }: Props) {
  const { config = '', node = '' } = fields;
  // Only the initial value decides, since typing in the field must not open or close the panel.
  const [isOpen] = useState(config !== '');
  const [problem, setProblem] = useState<string>();
  const job = useJob((error) =>
    setProblem(error instanceof Error ? error.message : 'It failed for an unknown reason.'),
  );
  const target = parseTarget(node);
  const read = () => {
    if ('refused' in target) return;
    setProblem(undefined);
    job.start(async ({ signal, step }) => {
      step(`Reading the config from ${target.host}`);
      const { readImages } = await import('../chain/read.ts');
      const images = await readImages(target.url, config.trim(), signal);
      onFile({ kind: 'registers', name: `config ${config.trim().slice(0, 10)}… at ${target.host}`, images });
    });
  };
  return (
    <details open={isOpen}>
      <summary>Compare with a config on Sui</summary>
      <div className="stack inset">
        <TextField
          label="Config"
          placeholder="0x…"
          value={config}
          onChange={(value) => setField('config', value)}
        />
        <div className="asking">
          <TextField
            label="Node (gRPC)"
            placeholder="https://fullnode.testnet.sui.io:443"
            value={node}
            onChange={(value) => setField('node', value)}
            problem={node.trim() !== '' && 'refused' in target ? target.refused : undefined}
            hint="The node decides what the config says: name one that you trust."
          />
          <button
            type="button"
            className="ds-button"
            data-variant="secondary"
            disabled={'refused' in target || config.trim() === ''}
            onClick={read}
          >
            {'refused' in target ? 'Read' : `Read from ${visibleText(target.host, 50)}`}
          </button>
        </div>
        <Progress job={job} />
        {problem !== undefined && (
          <p className="hint problem" role="alert">
            {visibleText(problem, 400)}
          </p>
        )}
      </div>
    </details>
  );
}
