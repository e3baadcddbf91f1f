import { type ReactNode, useId, useState } from 'react';

interface Props {
  readonly label: string;
  readonly children: ReactNode;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Files, dropped or chosen: the button serves those without a pointer. */
export function DropZone({ label, children, onFiles }: Props) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a second way; the input in it is the accessible one.
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
          // The value is cleared, so that choosing the same file again is a change.
          event.target.value = '';
        }}
      />
    </div>
  );
}
