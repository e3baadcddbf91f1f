import type { ReactNode } from 'react';
import { Mark } from './mark.tsx';

export type Tone = 'success' | 'warning' | 'danger' | 'neutral';

const STATES = { success: 'passed', warning: 'warning', danger: 'failed', neutral: 'not reached' } as const;

interface Props {
  readonly tone: Tone;
  readonly title: string;
  /** Stable error code, by which readers can look the error up. */
  readonly code?: string | undefined;
  readonly children?: ReactNode;
}

/** Shows a sentence in the colour of its meaning, with the reasons below. */
export function Verdict({ tone, title, code, children }: Props) {
  return (
    <section className="verdict" data-color={tone} data-tone={tone}>
      <Mark state={STATES[tone]} />
      <div>
        <h2>{title}</h2>
        {children}
        {code !== undefined && <code className="code">{code}</code>}
      </div>
    </section>
  );
}
