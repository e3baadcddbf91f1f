import { useState } from 'react';
import { type AppSchema, fetchSchema } from 'sui-enclave/client';
import { DevelopmentOffer } from '../enclave/development.tsx';
import { collectExpectation, type Given, readGiven, replaced } from '../enclave/files.ts';
import { GivenList } from '../enclave/given_list.tsx';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { visibleText } from '../lib/visible_text.ts';
import { DropZone } from '../parts/drop_zone.tsx';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { TextField } from '../parts/text_field.tsx';
import { Verdict } from '../parts/verdict.tsx';
import { CallPanel } from './call_panel.tsx';

interface Props {
  readonly fields: Readonly<Record<string, string>>;
}

interface Loaded {
  readonly schema: AppSchema;
  readonly base: URL;
}

/** Calls an enclave by a form that its application describes. */
export default function CallView({ fields }: Props) {
  const [address, setAddress] = useState(fields['url'] ?? '');
  const [files, setGiven] = useState<readonly Given[]>([]);
  const [loaded, setLoaded] = useState<Loaded>();
  const [problem, setProblem] = useState<string>();
  const job = useJob((error) => setProblem(error instanceof Error ? error.message : 'It failed.'));
  const target = parseTarget(address);
  const give = (added: readonly Given[]) =>
    setGiven((before) =>
      replaced(
        before,
        added.filter(({ kind }) => kind !== 'document'),
      ),
    );

  const load = () => {
    if ('refused' in target) return;
    setProblem(undefined);
    setLoaded(undefined);
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host} for the schema`);
      setLoaded({ schema: await fetchSchema(target.url, { signal }), base: target.url });
    });
  };

  return (
    <div className="view">
      <div>
        <h1>Call</h1>
        <p className="lead">
          Calls an enclave, and shows what it signed, byte by byte: under which key it verifies, what a
          contract would read, and what the host could see on the way.
        </p>
      </div>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          load();
        }}
      >
        <div className="asking">
          <TextField
            label="Address of the enclave"
            placeholder="https://enclave.example"
            value={address}
            onChange={setAddress}
            problem={address.trim() !== '' && 'refused' in target ? target.refused : undefined}
            hint="Nothing is sent before you click."
          />
          <button type="submit" className="ds-button" disabled={'refused' in target}>
            {'refused' in target ? 'Load the form' : `Load the form from ${visibleText(target.host, 60)}`}
          </button>
        </div>
        <DropZone
          label="Files to compare with"
          onFiles={async (files) => give(await Promise.all(files.map(readGiven)))}
        >
          Drop nitro.pcrs, the registers that you expect, or dev-root.pem, the root of an emulated enclave.
        </DropZone>
        <DevelopmentOffer onGiven={give} />
        <GivenList given={files} onDrop={(item) => setGiven(files.filter((file) => file !== item))} />
        <Progress job={job} />
      </form>
      <div role="status" className="view">
        {problem !== undefined && (
          <Verdict tone="danger" title="There is no form">
            <p>{visibleText(problem, 400)}</p>
            <p>The host answers with the schema that the image holds; an older image has none.</p>
          </Verdict>
        )}
      </div>
      {loaded && (
        <CallPanel
          key={loaded.base.href}
          schema={loaded.schema}
          base={loaded.base}
          expectation={collectExpectation(files)}
        />
      )}
      {!loaded && problem === undefined && job.step === undefined && (
        <Panel title="Nothing to see yet">
          <p className="subtle">
            The form comes from schema.json, which the application’s author commits and the image holds. The
            host could change it on the way, so it is marked as told by the host.
          </p>
        </Panel>
      )}
    </div>
  );
}
