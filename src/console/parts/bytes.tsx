import { useState } from 'react';
import { CopyButton } from './copy_button.tsx';

interface Props {
  readonly hex: string;
  /** The name of what it is, for those who hear the page. */
  readonly name: string;
  /** Shows all of it at first, where the difference to another one matters. */
  readonly isWhole?: boolean;
}

/** Bytes in hexadecimal, or an id: its beginning, the rest on demand, and to copy. */
export function Bytes({ hex, name, isWhole = false }: Props) {
  const [isOpen, setOpen] = useState(isWhole);
  const isLong = hex.length > 20;
  return (
    <span className="bytes">
      <code data-short={isLong && !isOpen}>{hex}</code>
      {isLong && (
        <button
          type="button"
          className="copy"
          aria-label={`${isOpen ? 'Less' : 'All'} of ${name}`}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? 'Less' : 'All'}
        </button>
      )}
      <CopyButton text={hex} name={name} />
    </span>
  );
}
