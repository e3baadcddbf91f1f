import { useState } from 'react';

/** @param name of the copied text, for users of a screen reader */
export function CopyButton({ text, name }: { readonly text: string; readonly name: string }) {
  const [message, setMessage] = useState('');
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setMessage('Copied'),
      () => setMessage('Not copied'),
    );
  return (
    <button
      type="button"
      className="copy"
      aria-label={`Copy ${name}`}
      onClick={copy}
      onBlur={() => setMessage('')}
    >
      <span role="status">{message === '' ? 'Copy' : message}</span>
    </button>
  );
}
