import { useState } from 'react';

/** @param name of the copied text, for users of a screen reader */
export function CopyButton({ text, name }: { readonly text: string; readonly name: string }) {
  const [message, setSaid] = useState('');
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setSaid('Copied'),
      () => setSaid('Not copied'),
    );
  return (
    <button
      type="button"
      className="copy"
      aria-label={`Copy ${name}`}
      onClick={copy}
      onBlur={() => setSaid('')}
    >
      <span role="status">{message === '' ? 'Copy' : message}</span>
    </button>
  );
}
