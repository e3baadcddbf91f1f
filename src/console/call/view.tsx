import { useState } from 'react';
import { type AppSchema, fetchSchema } from 'sui-enclave/client';
import { DevelopmentFiles } from '../enclave/development_files.tsx';
import { useExpectedFiles } from '../enclave/expected_files.ts';
import { FileList } from '../enclave/file_list.tsx';
import { collectExpectation, type RecognizedFile, readFile } from '../enclave/files.ts';
import type { Fields } from '../lib/route.ts';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { setField } from '../lib/use_route.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Collapsible } from '../parts/collapsible.tsx';
import { DropZone } from '../parts/drop_zone.tsx';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { TextField } from '../parts/text_field.tsx';
import { Verdict } from '../parts/verdict.tsx';
import { CallPanel } from './call_panel.tsx';

interface Props {
  readonly fields: Fields;
}

interface LoadedForm {
  readonly schema: AppSchema;
  readonly base: URL;
}

/** Lets the user call an enclave with a form that its application describes. */
export default function CallView({ fields }: Props) {
  const address = fields.url ?? '';
  const target = parseTarget(address);
  const expected = useExpectedFiles('refused' in target ? undefined : target.url.href);
  const { files } = expected;
  const [isOpen, setOpen] = useState(true);
  const [loadedForm, setLoaded] = useState<LoadedForm>();
  const [problem, setProblem] = useState<string>();
  const job = useJob((error) =>
    setProblem(error instanceof Error ? error.message : 'It failed for an unknown reason.'),
  );
  const give = (newFiles: readonly RecognizedFile[]) =>
    expected.give(newFiles.filter(({ kind }) => kind !== 'document'));

  /** Discards the form too, since it must not be used with the roots and registers of another address. */
  const changeAddress = (value: string) => {
    setField('url', value);
    job.cancel();
    setLoaded(undefined);
    setProblem(undefined);
  };

  const load = () => {
    if ('refused' in target) return;
    setProblem(undefined);
    setLoaded(undefined);
    expected.bind();
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host} for the schema`);
      setLoaded({ schema: await fetchSchema(target.url, { signal }), base: target.url });
      setOpen(false);
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
      <Collapsible summary={summarize(loadedForm)} isOpen={isOpen} onToggle={setOpen}>
        <form
          className="asking"
          onSubmit={(event) => {
            event.preventDefault();
            load();
          }}
        >
          <TextField
            label="Address of the enclave"
            placeholder="https://enclave.example"
            value={address}
            onChange={changeAddress}
            problem={address.trim() !== '' && 'refused' in target ? target.refused : undefined}
            hint="Nothing is sent before you click."
          />
          <button type="submit" className="ds-button" disabled={'refused' in target}>
            {'refused' in target ? 'Load the form' : `Load the form from ${visibleText(target.host, 60)}`}
          </button>
        </form>
        <DropZone
          label="Files to compare with"
          onFiles={async (files) => give(await Promise.all(files.map(readFile)))}
        >
          Drop nitro.pcrs, the registers that you expect, or dev-root.pem, the root of an emulated enclave.
        </DropZone>
        <DevelopmentFiles expected={expected} />
        <FileList files={files} onDrop={expected.remove} />
        <Progress job={job} />
      </Collapsible>
      <div role="status" className="view">
        {problem !== undefined && (
          <Verdict tone="danger" title="There is no form">
            <p>{visibleText(problem, 400)}</p>
            <p>The host answers with the schema in the image; an older image has no schema.</p>
          </Verdict>
        )}
      </div>
      {loadedForm && (
        <CallPanel
          key={loadedForm.base.href}
          schema={loadedForm.schema}
          base={loadedForm.base}
          node={fields.node ?? ''}
          expectation={collectExpectation(files)}
        />
      )}
      {!loadedForm && problem === undefined && job.step === undefined && (
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

function summarize(loadedForm: LoadedForm | undefined): string {
  if (loadedForm === undefined) return 'Address, root and registers';
  return `${visibleText(loadedForm.base.host, 80)}: change address, root or registers`;
}
