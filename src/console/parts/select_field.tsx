import { useId } from 'react';
import { visibleText } from '../lib/visible_text.ts';

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly string[];
}

export function SelectField({ label, value, onChange, options }: Props) {
  const id = useId();
  return (
    <div className="ds-field field">
      <label className="ds-label" htmlFor={id}>
        {label}
      </label>
      <select id={id} className="ds-input" value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {visibleText(option, 120)}
          </option>
        ))}
      </select>
    </div>
  );
}
