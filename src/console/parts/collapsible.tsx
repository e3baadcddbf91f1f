import type { ReactNode } from 'react';

interface Props {
  readonly summary: string;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly children: ReactNode;
}

/** Shows a panel that collapses after it was used. A click on its summary opens it again. */
export function Collapsible({ summary, isOpen, onToggle, children }: Props) {
  return (
    <details
      className="panel collapsible"
      open={isOpen}
      onToggle={(event) => onToggle(event.currentTarget.open)}
    >
      <summary>{summary}</summary>
      <div className="stack">{children}</div>
    </details>
  );
}
