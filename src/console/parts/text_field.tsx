import { type InputHTMLAttributes, type ReactNode, useId } from 'react';

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ReactNode;
  /** Reason why the value can't be used. */
  readonly problem?: string | undefined;
}

export function TextField({ label, value, onChange, hint, problem, ...input }: Props) {
  const id = useId();
  const descriptionId = hint !== undefined || problem !== undefined ? `${id}-description` : undefined;
  return (
    <div className="ds-field field">
      <label className="ds-label" htmlFor={id}>
        {label}
      </label>
      <input
        {...input}
        id={id}
        className="ds-input"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby={descriptionId}
        aria-invalid={problem !== undefined}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
      />
      {descriptionId !== undefined && (
        <p id={descriptionId} className={problem === undefined ? 'hint' : 'hint problem'}>
          {problem ?? hint}
        </p>
      )}
    </div>
  );
}
