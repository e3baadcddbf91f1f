import { useState } from 'react';
import type { SchemaType } from 'sui-enclave/client';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { setField } from '../lib/use_route.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Progress } from '../parts/progress.tsx';
import { TextField } from '../parts/text_field.tsx';
import { Verdict } from '../parts/verdict.tsx';

/** Outcome of a comparison of the signed type with the struct. */
export interface Comparison {
  readonly typeName: string;
  /** The difference in words; undefined if type and struct are equal. */
  readonly difference: string | undefined;
}

interface Props {
  readonly type: SchemaType;
  readonly node: string;
  /** The latest comparison, which may be of another type. */
  readonly comparison: Comparison | undefined;
  readonly onCompared: (comparison: Comparison | undefined) => void;
}

/**
 * Compares the signed type with the struct of a contract. The host describes the signed type, and the chain
 * has the struct.
 */
export function StructFields({ type, node, comparison, onCompared }: Props) {
  const [struct, setStruct] = useState('');
  const [problem, setProblem] = useState<string>();
  const job = useJob((error) =>
    setProblem(error instanceof Error ? error.message : 'It failed for an unknown reason.'),
  );
  const target = parseTarget(node);
  const [, packageId, moduleName] = /^(0x[0-9a-fA-F]{1,64})::([A-Za-z]\w*)$/.exec(struct.trim()) ?? [];
  const isReady = packageId !== undefined && moduleName !== undefined && !('refused' in target);

  const typeComparison = comparison?.typeName === type.name ? comparison : undefined;

  /** Clears the comparison, which belongs to the former struct and node. */
  const reset = () => {
    job.cancel();
    setProblem(undefined);
    onCompared(undefined);
  };

  const compare = () => {
    if (!isReady) return;
    reset();
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host} for the struct`);
      const { describeDifference } = await import('../chain/struct.ts');
      const difference = await describeDifference(target.url, { packageId, moduleName }, type, signal);
      onCompared({ typeName: type.name, difference });
    });
  };

  return (
    <div className="panel">
      <details>
        <summary>Compare the type with a contract on Sui</summary>
        <div className="stack inset">
          <TextField
            label={`Package and module that declare ${visibleText(type.name, 80)}`}
            placeholder="0x…::weather"
            value={struct}
            onChange={(value) => {
              setStruct(value);
              reset();
            }}
          />
          <div className="asking">
            <TextField
              label="Node (gRPC)"
              placeholder="https://fullnode.testnet.sui.io:443"
              value={node}
              onChange={(value) => {
                setField('node', value);
                reset();
              }}
              problem={node.trim() !== '' && 'refused' in target ? target.refused : undefined}
            />
            <button
              type="button"
              className="ds-button"
              data-variant="secondary"
              disabled={!isReady}
              onClick={compare}
            >
              {'refused' in target ? 'Compare' : `Compare at ${visibleText(target.host, 50)}`}
            </button>
          </div>
          <Progress job={job} />
          <div role="status">
            {problem !== undefined && <p className="hint problem">{visibleText(problem, 400)}</p>}
            {typeComparison && typeComparison.difference === undefined && (
              <Verdict tone="success" title="The contract reads the same struct">
                <p>Names, order and types are equal, according to the node.</p>
              </Verdict>
            )}
            {typeComparison?.difference !== undefined && (
              <Verdict tone="danger" title="The schema differs from the contract">
                <p>{visibleText(typeComparison.difference, 300)}</p>
                <p>
                  The host may have changed the schema, or the schema is of another version. Don’t trust what
                  the form says.
                </p>
              </Verdict>
            )}
          </div>
        </div>
      </details>
    </div>
  );
}
