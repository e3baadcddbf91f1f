/** Shows one link of the chain from the code that runs to the object on Sui. */
import type { ReactNode } from 'react';
import type { ProofState, Verdict } from '../enclave/proof.ts';

const WORDS: Readonly<Record<ProofState, string>> = {
  proven: 'Verified',
  checked: 'Verified, but another step is not',
  waiting: 'Being checked',
  missing: 'Not yet',
  wrong: 'Refused',
};

interface Props {
  readonly verdict: Verdict;
  readonly title: string;
  readonly children?: ReactNode;
}

export function ProofStep({ verdict: { state, refusal }, title, children }: Props) {
  return (
    <li className={`proof ${state}`}>
      <h3>
        <span className="hidden">{WORDS[state]}: </span>
        {title}
      </h3>
      {refusal !== undefined && <p className="refusal">{refusal}</p>}
      {children}
    </li>
  );
}
