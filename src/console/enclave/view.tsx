import { type FormEvent, useState } from 'react';
import { RULES } from 'sui-enclave/attestation';
import { RequestError } from '../lib/request.ts';
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
import { ConfigFields } from './config_fields.tsx';
import { DevelopmentFiles } from './development_files.tsx';
import { type Examination, examine, fetchDocument, type Subject } from './examine.ts';
import { useExpectedFiles } from './expected_files.ts';
import { FileList } from './file_list.tsx';
import { collectExpectation, type RecognizedFile, readFile } from './files.ts';
import { ExaminationVerdict, Report } from './report.tsx';

interface Props {
  readonly fields: Fields;
}

/** The reason why there is no verdict on a document. */
interface NoVerdict {
  readonly failure: string;
  readonly isAnswered: boolean;
}

/** Attests an enclave, or verifies a document, within the page. */
export function EnclaveView({ fields }: Props) {
  const address = fields.url ?? '';
  const target = parseTarget(address);
  const expected = useExpectedFiles('refused' in target ? undefined : target.url.href);
  const { files } = expected;
  const [isOpen, setOpen] = useState(true);
  const [subject, setSubject] = useState<Subject>();
  const [outcome, setOutcome] = useState<Examination | NoVerdict>();
  const job = useJob((error) =>
    setOutcome({
      failure: error instanceof Error ? error.message : 'It failed for an unknown reason.',
      isAnswered: !(error instanceof RequestError),
    }),
  );
  const isRefused = address.trim() !== '' && 'refused' in target;

  /** Changes the address and clears the answer, which belongs to the former address. */
  const changeAddress = (value: string) => {
    setField('url', value);
    job.cancel();
    setSubject(undefined);
    setOutcome(undefined);
  };

  const showReport = async (
    newSubject: Subject,
    allFiles: readonly RecognizedFile[],
    signal: AbortSignal,
  ) => {
    const examination = await examine(newSubject, collectExpectation(allFiles));
    // The verification itself ignores the signal.
    signal.throwIfAborted();
    setOutcome(examination);
    setOpen(false);
  };

  const attest = (event: FormEvent) => {
    event.preventDefault();
    if ('refused' in target) return;
    setOutcome(undefined);
    setSubject(undefined);
    expected.bind();
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host} for a document with a fresh nonce`);
      const document = await fetchDocument(target.url, signal);
      step(`Verifying the document by ${RULES.length} rules`);
      setSubject(document);
      await showReport(document, files, signal);
    });
  };

  /** Replaces earlier files by new files of the same kinds, and examines the document again. */
  const give = (newFiles: readonly RecognizedFile[]) => {
    const allFiles = expected.give(newFiles.filter(({ kind }) => kind !== 'document'));
    const document = newFiles.find((file) => file.kind === 'document');
    const newSubject = document ? { bytes: document.bytes, nonce: undefined, from: document.name } : subject;
    if (!newSubject) return;
    setSubject(newSubject);
    job.start(({ signal }) => showReport(newSubject, allFiles, signal));
  };

  const drop = (file: RecognizedFile) => {
    const allFiles = expected.remove(file);
    if (subject) job.start(({ signal }) => showReport(subject, allFiles, signal));
  };

  return (
    <div className="view">
      <div>
        <h1>Enclave</h1>
        <p className="lead">
          Asks an enclave who it is, and verifies the answer here, in this page: the certificates up to AWS,
          the signature, and the registers of the enclave’s image.
        </p>
      </div>
      <Collapsible summary={summarize(subject)} isOpen={isOpen} onToggle={setOpen}>
        <form className="asking" onSubmit={attest}>
          <TextField
            label="Address of the enclave"
            placeholder="https://enclave.example"
            value={address}
            onChange={changeAddress}
            problem={isRefused ? target.refused : undefined}
            hint="Nothing is sent before you click."
          />
          <button type="submit" className="ds-button" disabled={'refused' in target}>
            {'refused' in target ? 'Attest' : `Attest ${visibleText(target.host, 60)}`}
          </button>
        </form>
        <DropZone
          label="Files to compare with, or a document"
          onFiles={async (files) => give(await Promise.all(files.map(readFile)))}
        >
          Drop nitro.pcrs, the registers that you expect; a document to verify; or dev-root.pem, the root of
          an emulated enclave. They stay in this page.
        </DropZone>
        <ConfigFields
          // The config that a node returned is only for this address: another address gets new fields.
          key={'refused' in target ? '' : target.url.href}
          fields={fields}
          onFile={(file) => give([file])}
        />
        <DevelopmentFiles expected={expected} />
        <FileList files={files} onDrop={drop} />
        <Progress job={job} />
      </Collapsible>
      <div role="status" className="view">
        {outcome && 'failure' in outcome && (
          <Verdict tone="danger" title={outcome.isAnswered ? 'Nothing was verified' : 'No answer to verify'}>
            <p>{visibleText(outcome.failure, 500)}</p>
          </Verdict>
        )}
        {outcome && 'explanation' in outcome && <ExaminationVerdict examination={outcome} />}
      </div>
      {outcome && 'explanation' in outcome && <Report examination={outcome} />}
      {outcome === undefined && job.step === undefined && <Empty />}
    </div>
  );
}

function summarize(subject: Subject | undefined): string {
  if (subject === undefined) return 'Address, root and registers';
  return `${visibleText(subject.from, 80)}: change address, root or registers`;
}

function Empty() {
  return (
    <Panel title="Nothing to see yet">
      <p className="subtle">
        Enter an address and click, or drop a document. You will see one verdict, the chain from the root to
        the enclave, its registers beside yours, and all {RULES.length} rules.
      </p>
    </Panel>
  );
}
