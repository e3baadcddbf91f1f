import { visibleText } from '../lib/visible_text.ts';
import { SelectField } from '../parts/select_field.tsx';
import { TextField } from '../parts/text_field.tsx';
import type { FormField } from './schema_form.ts';

interface Props {
  readonly field: FormField;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly problem: string | undefined;
}

const PLACEHOLDERS = {
  text: 'text',
  integer: 'integer',
  number: 'number',
  json: 'JSON',
  boolean: '',
  choice: '',
} as const;

/** Shows a field of the form according to its kind, with the host's description below. */
export function InputField({ field, value, onChange, problem }: Props) {
  const { path, kind, choices, isRequired, description } = field;
  const name = visibleText(path.join('.') || 'body', 120);
  const label = isRequired ? name : `${name} (may be empty)`;
  if (kind === 'boolean' || kind === 'choice') {
    const options = kind === 'boolean' ? ['true', 'false'] : choices;
    return <SelectField label={label} value={value} onChange={onChange} options={['', ...options]} />;
  }
  return (
    <TextField
      label={label}
      placeholder={PLACEHOLDERS[kind]}
      value={value}
      onChange={onChange}
      problem={problem}
      {...(description !== '' && { hint: visibleText(description, 400) })}
    />
  );
}
