import { useState } from 'react';
import { CopyButton } from './copy_button.tsx';

interface Props {
  readonly hex: string;
  /** Name of the bytes, for users of a screen reader. */
  readonly name: string;
  /** Whether all bytes are visible at first, for a comparison with others. */
  readonly isWhole?: boolean;
}

/**
 * Shows bytes in hexadecimal, or an id: at first its beginning, with buttons to show the rest and to copy it.
 */
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
