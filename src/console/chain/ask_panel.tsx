import { type FormEvent, useState } from 'react';
import { AttestationError } from 'sui-enclave/attestation';
import { acceptedImages } from 'sui-enclave/sui';
import { DevelopmentOffer } from '../enclave/development.tsx';
import { examine, fetchDocument } from '../enclave/examine.ts';
import type { Given } from '../enclave/files.ts';
import { judge } from '../enclave/judge.ts';
import { toHex } from '../lib/bytes.ts';
import { RequestError } from '../lib/request.ts';
import { parseTarget } from '../lib/target.ts';
import { useJob } from '../lib/use_job.ts';
import { visibleText } from '../lib/visible_text.ts';
import { Panel } from '../parts/panel.tsx';
import { Progress } from '../parts/progress.tsx';
import { Tag } from '../parts/tag.tsx';
import { TextField } from '../parts/text_field.tsx';
import { type Asked, chooseLight, type Light, lightOfAsked } from './lights.ts';
import type { ChainState } from './read.ts';

/** Asks enclaves, and shows a light for each: the chain does not know which of them answer. */
export function AskPanel({ state }: { readonly state: ChainState }) {
  const [address, setAddress] = useState('');
  const [roots, setRoots] = useState<readonly Uint8Array[]>([]);
  const [lights, setLights] = useState<readonly (readonly [string, Light])[]>([]);
  const job = useJob(() => {});
  const target = parseTarget(address);

  const ask = (event: FormEvent) => {
    event.preventDefault();
    if ('refused' in target) return;
    job.start(async ({ signal, step }) => {
      step(`Asking ${target.host}`);
      const light = lightOfAsked(await attest(target.url, state, roots, signal), registeredLights(state));
      setLights((before) => [[target.host, light], ...before.filter(([host]) => host !== target.host)]);
    });
  };

  return (
    <Panel title="Ask an enclave" aside={<span className="subtle">the chain does not know who answers</span>}>
      <div className="stack">
        <form className="asking" onSubmit={ask}>
          <TextField
            label="Address of an enclave"
            placeholder="https://enclave.example"
            value={address}
            onChange={setAddress}
            problem={address.trim() !== '' && 'refused' in target ? target.refused : undefined}
            hint="It is attested with the registers of this config."
          />
          <button type="submit" className="ds-button" disabled={'refused' in target}>
            {'refused' in target ? 'Ask' : `Ask ${visibleText(target.host, 60)}`}
          </button>
        </form>
        <DevelopmentOffer onGiven={(files) => setRoots(rootsIn(files))} />
        {roots.length > 0 && (
          <p className="hint">
            Enclaves are trusted under the root of make dev, which anyone with its key can use.
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

const rootsIn = (files: readonly Given[]) =>
  files.flatMap((item) => (item.kind === 'roots' ? item.roots : []));

/** Returns the lights of the registered enclaves by key in hexadecimal. */
function registeredLights({ config, list, readAtMs }: ChainState): ReadonlyMap<string, Light> {
  return new Map(
    list.enclaves.map((enclave) => [toHex(enclave.publicKey), chooseLight(enclave, config, readAtMs)]),
  );
}

/** @throws the signal's reason */
async function attest(
  url: URL,
  { config }: ChainState,
  roots: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<Asked> {
  try {
    const subject = await fetchDocument(url, signal);
    const examination = await examine(subject, { images: acceptedImages(config, Date.now()), roots });
    const { verified } = examination.explanation;
    if (!verified) return { kind: 'refused', why: judge(examination).title };
    return { kind: 'attested', publicKey: toHex(verified.document.publicKey ?? new Uint8Array()) };
  } catch (error) {
    if (error instanceof RequestError) return { kind: 'silent', why: error.message };
    // The config has registers that no enclave may have.
    if (error instanceof AttestationError) return { kind: 'refused', why: error.message };
    throw error;
  }
}
