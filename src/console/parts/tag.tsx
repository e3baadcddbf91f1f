import type { ReactNode } from 'react';
import type { Tone } from './verdict.tsx';

export function Tag({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return (
    <span className="ds-tag" data-color={tone} data-size="sm">
      {children}
    </span>
  );
}
