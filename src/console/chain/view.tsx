import { type FormEvent, type ReactNode, useState } from 'react';
import { type Fields, linkTo } from '../lib/route.ts';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { setField } from '../lib/use_route.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { TextField } from '../parts/text_field.tsx';
import { Verdict } from '../parts/verdict.tsx';
import { AskPanel } from './ask_panel.tsx';
import { ConfigPanel } from './config_panel.tsx';
import { EnclavesPanel } from './enclaves_panel.tsx';
import { type Ledger, readLedger } from './ledger.ts';
import { LedgerPanels } from './ledger_panels.tsx';
import { type Entry, isLookUpId, lookUp } from './look_up.ts';
import { LookUpPanel } from './look_up_panel.tsx';
import { NetworkField } from './network_field.tsx';
import { type ChainState, readChain } from './read.ts';
import { TimeLine } from './time_line.tsx';

interface Props {
  readonly fields: Fields;
}

type Outcome =
  | { readonly state: ChainState }
  | { readonly ledger: Ledger; readonly node: URL }
  | { readonly entry: Entry }
  | { readonly failure: string };

/**
 * Shows a config on Sui: the images that it allows, the people who may change it, its enclaves, and its
 * history.
 */
export default function ChainView({ fields }: Props) {
  const { node = '', config = '', id = '' } = fields;
  const [isLookUpOpen] = useState(id !== '');
  const [outcome, setOutcome] = useState<Outcome>();
  const job = useJob((error) =>
    setOutcome({ failure: error instanceof Error ? error.message : 'It failed for an unknown reason.' }),
  );
  const target = parseTarget(node);
  const host = 'refused' in target ? undefined : target.host;
  const isConfig = config.trim() !== '';

  /** Changes a field and clears the outcome, which belongs to the former node and config. */
  const change = (name: 'node' | 'config', value: string) => {
    setField(name, value);
    job.cancel();
    setOutcome(undefined);
  };

  const read = (event: FormEvent) => {
    event.preventDefault();
    if ('refused' in target || !isConfig) return;
    setOutcome(undefined);
    job.start(async (work) => {
      setOutcome({ state: await readChain(target.url, config.trim(), work) });
    });
  };

  const show = (lookUpId: string) => {
    if ('refused' in target || !isLookUpId(lookUpId)) return;
    setField('id', lookUpId);
    setOutcome(undefined);
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host}`);
      setOutcome({ entry: await lookUp(target.url, lookUpId, signal) });
    });
  };
  const renderLink = (lookUpId: string, children: ReactNode) => (
    <a
      href={linkTo('chain', { ...fields, id: lookUpId })}
      onClick={(event) => {
        event.preventDefault();
        show(lookUpId);
      }}
    >
      {children}
    </a>
  );

  const list = () => {
    if ('refused' in target) return;
    setOutcome(undefined);
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host} for its ledger`);
      setOutcome({ ledger: await readLedger(target.url, signal), node: target.url });
    });
  };

  return (
    <div className="view">
      <div>
        <h1>Chain</h1>
        <p className="lead">
          Reads a config from a node of Sui: the registers that contracts accept, who may change them, and
          every enclave that was registered. The node decides what you see here, so name one that you trust.
        </p>
      </div>
      <form className="panel stack" onSubmit={read}>
        <div className="pair">
          <NetworkField node={node} onNode={(value) => change('node', value)} />
          <TextField
            label="Node (gRPC)"
            placeholder="https://fullnode.testnet.sui.io:443"
            value={node}
            onChange={(value) => change('node', value)}
            problem={node.trim() !== '' && 'refused' in target ? target.refused : undefined}
          />
        </div>
        <TextField
          label="Config"
          placeholder="0x…"
          value={config}
          onChange={(value) => change('config', value)}
          hint="The id of an EnclaveConfig, which create_config prints. Nothing is sent before you click."
        />
        <div className="buttons">
          <button type="submit" className="ds-button" disabled={host === undefined || !isConfig}>
            {host === undefined ? 'Read' : `Read from ${visibleText(host, 60)}`}
          </button>
          <button
            type="button"
            className="ds-button"
            data-variant="secondary"
            disabled={host === undefined}
            onClick={list}
          >
            {host === undefined
              ? 'List the ledger of a model'
              : `List the ledger of ${visibleText(host, 60)}`}
          </button>
        </div>
        <p className="hint">
          Only the model of sui-enclave dev-sui and play lists its ledger: the ledger of a network is too
          large.
        </p>
        <details open={isLookUpOpen}>
          <summary>Look up an object or a transaction</summary>
          <div className="asking inset">
            <TextField
              label="Id or digest"
              placeholder="0x…"
              value={id}
              onChange={(value) => setField('id', value.trim())}
              problem={
                id === '' || isLookUpId(id)
                  ? undefined
                  : 'Enter the id of an object (0x…) or the digest of a transaction.'
              }
            />
            <button
              type="button"
              className="ds-button"
              data-variant="secondary"
              disabled={host === undefined || !isLookUpId(id)}
              onClick={() => show(id)}
            >
              {host === undefined ? 'Show' : `Show from ${visibleText(host, 50)}`}
            </button>
          </div>
        </details>
        <Progress job={job} />
      </form>
      <div role="status" className="view">
        {outcome && 'failure' in outcome && (
          <Verdict tone="danger" title="Nothing could be read">
            <p>{visibleText(outcome.failure, 500)}</p>
          </Verdict>
        )}
      </div>
      {outcome && 'state' in outcome && (
        <>
          <ConfigPanel state={outcome.state} fields={fields} />
          <EnclavesPanel state={outcome.state} />
          <AskPanel state={outcome.state} address={fields.url ?? ''} />
          <TimeLine events={outcome.state.events} />
        </>
      )}
      {outcome && 'ledger' in outcome && (
        <LedgerPanels
          ledger={outcome.ledger}
          host={outcome.node.host}
          node={outcome.node.href}
          renderLink={renderLink}
        />
      )}
      {outcome && 'entry' in outcome && <LookUpPanel entry={outcome.entry} renderLink={renderLink} />}
      {outcome === undefined && job.step === undefined && (
        <Panel title="Nothing to see yet">
          <p className="subtle">
            Name a node and a config, and click. You will see what contracts accept, a light for each enclave,
            and a time line if the node offers events.
          </p>
        </Panel>
      )}
    </div>
  );
}
