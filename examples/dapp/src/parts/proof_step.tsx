/** One link of the chain from the code that runs to the object on Sui. */
import type { ReactNode } from 'react';

export type ProofState = 'proven' | 'waiting' | 'missing' | 'wrong';

const WORDS: Readonly<Record<ProofState, string>> = {
  proven: 'Verified',
  waiting: 'Being checked',
  missing: 'Not yet',
  wrong: 'Not verified',
};

interface Props {
  readonly state: ProofState;
  readonly title: string;
  readonly children?: ReactNode;
}

export function ProofStep({ state, title, children }: Props) {
  return (
    <li className={`proof ${state}`}>
      <h3>
        <span className="hidden">{WORDS[state]}: </span>
        {title}
      </h3>
      {children}
    </li>
  );
}
