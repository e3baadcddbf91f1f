import { useState } from 'react';
import { requestJson } from '../lib/request.ts';
import { type Given, recognizeFile } from './files.ts';

/** `make dev` and `make dev-sui` name a file with what they made, in the page that they serve. */
const file = document.querySelector<HTMLMetaElement>('meta[name="development"]')?.content;

/** Offers root and registers of the emulated enclave, where this page comes from `make dev`. */
export function DevelopmentOffer({ onGiven }: { readonly onGiven: (files: readonly Given[]) => void }) {
  const [problem, setProblem] = useState<string>();
  if (file === undefined) return null;
  const take = async () => {
    try {
      onGiven(
        givenIn(await requestJson(new URL(file, location.href), { signal: new AbortController().signal })),
      );
      setProblem(undefined);
    } catch {
      setProblem('No development root found. Run make dev ATTEST=emulated.');
    }
  };
  return (
    <div>
      <button type="button" className="ds-button" data-variant="secondary" onClick={take}>
        Use root and registers of make dev
      </button>
      {problem !== undefined && <p className="hint problem">{problem}</p>}
    </div>
  );
}

/** @throws Error when there is nothing in it */
function givenIn(json: unknown): Given[] {
  const files = typeof json === 'object' && json !== null ? Object.entries(json) : [];
  if (files.length === 0) throw new Error('nothing was made');
  return files.map(([name, text]) => recognizeFile(name, new TextEncoder().encode(String(text))));
}
