import { type ReactNode, useId, useState } from 'react';

interface Props {
  readonly label: string;
  readonly children: ReactNode;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Lets the user drop files, or choose them with a button, which works without a pointer. */
export function DropZone({ label, children, onFiles }: Props) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way; the input is accessible.
    <div
      className="drop"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onFiles([...event.dataTransfer.files]);
      }}
    >
      <div>
        <label className="ds-label" htmlFor={id}>
          {label}
        </label>
        <p className="hint">{children}</p>
      </div>
      <input
        id={id}
        type="file"
        multiple
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // Without this, choosing the same file again would not be a change.
          event.target.value = '';
        }}
      />
    </div>
  );
}
