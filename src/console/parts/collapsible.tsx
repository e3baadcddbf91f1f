import type { ReactNode } from 'react';

interface Props {
  readonly summary: string;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly children: ReactNode;
}

/** A panel whose content is out of the way once it was used; its summary opens it again. */
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
