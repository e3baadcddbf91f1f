import { type FormEvent, useState } from 'react';
import { AttestationError } from 'sui-enclave/attestation';
import { acceptedImages } from 'sui-enclave/sui';
import { DevelopmentFiles } from '../enclave/development_files.tsx';
import { examine, fetchDocument } from '../enclave/examine.ts';
import { useExpectedFiles } from '../enclave/expected_files.ts';
import { collectExpectation } from '../enclave/files.ts';
import { judge } from '../enclave/judge.ts';
import { toHex } from '../lib/bytes.ts';
import { RequestError } from '../lib/request.ts';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { setField } from '../lib/use_route.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { Tag } from '../parts/tag.tsx';
import { TextField } from '../parts/text_field.tsx';
import { type AttestationOutcome, chooseAnswerLight, chooseLight, type Light } from './lights.ts';
import type { ChainState } from './read.ts';

/**
 * Asks enclaves for attestation, and shows a light for each, since the chain does not know which enclaves
 * answer.
 */
export function AskPanel({ state, address }: { readonly state: ChainState; readonly address: string }) {
  const [lights, setLights] = useState<readonly (readonly [string, Light])[]>([]);
  const job = useJob(() => {});
  const target = parseTarget(address);
  const expected = useExpectedFiles('refused' in target ? undefined : target.url.href);
  const { roots } = collectExpectation(expected.files);

  const ask = (event: FormEvent) => {
    event.preventDefault();
    if ('refused' in target) return;
    expected.bind();
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host}`);
      const light = chooseAnswerLight(
        await attest(target.url, state, roots, signal),
        listRegisteredLights(state),
      );
      setLights((formerLights) => [
        [target.host, light],
        ...formerLights.filter(([host]) => host !== target.host),
      ]);
    });
  };

  return (
    <Panel
      title="Ask an enclave"
      aside={<span className="subtle">the chain does not know which enclaves answer</span>}
    >
      <div className="stack">
        <form className="asking" onSubmit={ask}>
          <TextField
            label="Address of an enclave"
            placeholder="https://enclave.example"
            value={address}
            onChange={(value) => setField('url', value)}
            problem={address.trim() !== '' && 'refused' in target ? target.refused : undefined}
            hint="Its attestation must have the registers of this config."
          />
          <button type="submit" className="ds-button" disabled={'refused' in target}>
            {'refused' in target ? 'Ask' : `Ask ${visibleText(target.host, 60)}`}
          </button>
        </form>
        <DevelopmentFiles expected={expected} />
        {roots.length > 0 && expected.startedBy === undefined && (
          <p className="hint">
            This enclave is trusted under a root that you gave, in place of AWS’s: anyone who has the root’s
            key can attest anything.
          </p>
        )}
        <Progress job={job} />
        <ul className="cards" aria-label="Enclaves that were asked" aria-live="polite">
          {lights.map(([host, { tone, word, why }]) => (
            <li key={host}>
              <p className="register">
                <Tag tone={tone}>{word}</Tag>
                <strong>{visibleText(host, 80)}</strong>
              </p>
              <p className="hint">{visibleText(why, 400)}</p>
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

/** Returns the lights of the registered enclaves by key in hexadecimal. */
function listRegisteredLights({ config, list, readAtMs }: ChainState): ReadonlyMap<string, Light> {
  return new Map(
    list.enclaves.map((enclave) => [toHex(enclave.publicKey), chooseLight(enclave, config, readAtMs)]),
  );
}

/** Attests the enclave at a URL. @throws the signal's reason */
async function attest(
  url: URL,
  { config }: ChainState,
  roots: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<AttestationOutcome> {
  try {
    const subject = await fetchDocument(url, signal);
    const examination = await examine(subject, { images: acceptedImages(config, Date.now()), roots });
    const { verified } = examination.explanation;
    if (!verified) return { kind: 'refused', why: judge(examination).title };
    return { kind: 'attested', publicKey: toHex(verified.document.publicKey ?? new Uint8Array()) };
  } catch (error) {
    if (error instanceof RequestError) return { kind: 'silent', why: error.message };
    // The config has registers that no enclave can have.
    if (error instanceof AttestationError) return { kind: 'refused', why: error.message };
    throw error;
  }
}
