/**
 * Makes the fields of a form from a JSON Schema that a host sent, and a body from the fields' values. The
 * page trusts no part of this schema.
 */
import type { JsonSchema } from 'sui-enclave/client';

export interface FormField {
  /** Names of the properties, from the outermost object inwards; empty for the whole body. */
  readonly path: readonly string[];
  readonly kind: 'text' | 'integer' | 'number' | 'boolean' | 'choice' | 'json';
  /** Values of a choice, as JSON. */
  readonly choices: readonly string[];
  readonly isRequired: boolean;
  /** The host's description of the field; empty if the host gives none. */
  readonly description: string;
}

/** Texts that the user wrote, by field: see `formatKey`. */
export type Values = Readonly<Record<string, string>>;

export type Body = { readonly body: unknown } | { readonly field: FormField; readonly problem: string };

const MAX_FIELDS = 64;
const MAX_DEPTH = 6;
const MAX_CHOICES = 50;

export function formatKey({ path }: FormField): string {
  return JSON.stringify(path);
}

/** Lists the fields of a form. A part of the schema that a form can't show becomes a field for JSON. */
export function listFields(schema: JsonSchema): readonly FormField[] {
  return listFieldsWithin(schema, [], true).slice(0, MAX_FIELDS);
}

function listFieldsWithin(schema: JsonSchema, path: readonly string[], isRequired: boolean): FormField[] {
  const { type, properties, required, enum: choices } = schema;
  const description = describeRules(schema);
  const field = { path, isRequired, description, choices: [] };
  if (Array.isArray(choices) && choices.length <= MAX_CHOICES) {
    return [{ ...field, kind: 'choice', choices: choices.map((choice) => JSON.stringify(choice)) }];
  }
  if (type === 'object' && isRecord(properties) && path.length < MAX_DEPTH && isRequired) {
    const names = Array.isArray(required) ? required : [];
    return Object.entries(properties)
      .slice(0, MAX_FIELDS)
      .flatMap(([name, inner]) =>
        isRecord(inner) ? listFieldsWithin(inner, [...path, name], names.includes(name)) : [],
      );
  }
  if (type === 'string') return [{ ...field, kind: 'text' }];
  if (type === 'integer' || type === 'number' || type === 'boolean') return [{ ...field, kind: type }];
  return [{ ...field, kind: 'json' }];
}

const formatCharacters = (count: number) => (count === 1 ? '1 character' : `${count} characters`);

/** Keywords of a schema with a limit, each with the text that explains it. */
const LIMITS: readonly (readonly [keyword: string, format: (limit: number) => string])[] = [
  ['minLength', (limit) => `at least ${formatCharacters(limit)}`],
  ['maxLength', (limit) => `at most ${formatCharacters(limit)}`],
  ['minimum', (limit) => `at least ${limit}`],
  ['maximum', (limit) => `at most ${limit}`],
];

/**
 * Returns the rules of a field for people. `sui-enclave schema` writes the steps of valibot into the
 * description, such as `check: must be at most 256 bytes; transform`. Their messages are for people.
 */
function describeRules(schema: JsonSchema): string {
  const limits = LIMITS.flatMap(([keyword, format]) => {
    const limit = schema[keyword];
    return typeof limit === 'number' ? [format(limit)] : [];
  });
  const { description } = schema;
  const steps = typeof description === 'string' ? description.split('; ') : [];
  const messages = steps.flatMap((step) => {
    const [, message = step] = /^[a-z_]+: (.+)$/s.exec(step) ?? [];
    // A step without a message, such as transform, tells a caller nothing.
    return /^[a-z_]*$/.test(message) ? [] : [message.replace(/^must be /, '')];
  });
  const text = [...new Set([...limits, ...messages])].join('; ');
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Builds the body from the values. Leaves out empty fields that are not required. */
export function buildBody(fields: readonly FormField[], values: Values): Body {
  let body: unknown = {};
  for (const field of fields) {
    const text = values[formatKey(field)] ?? '';
    if (text === '' && !field.isRequired) continue;
    const value = readValue(field, text);
    if ('problem' in value) return { field, problem: value.problem };
    body = withValue(body, field.path, value.value);
  }
  return { body };
}

/**
 * Returns the query of a GET, with its question mark, for the body that a form gave. The query is empty if
 * there are no parameters.
 */
export function buildQuery(body: unknown): string {
  const entries = isRecord(body) ? Object.entries(body) : [];
  const texts = entries.map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const query = new URLSearchParams(texts).toString();
  return query === '' ? '' : `?${query}`;
}

function readValue({ kind }: FormField, text: string): { value: unknown } | { problem: string } {
  switch (kind) {
    case 'text':
      return { value: text };
    case 'integer':
      if (!/^-?[0-9]{1,80}$/.test(text)) return { problem: 'Write an integer.' };
      if (!Number.isSafeInteger(Number(text))) return { problem: 'Too large for JSON to hold exactly.' };
      return { value: Number(text) };
    case 'number':
      if (text.trim() === '' || !Number.isFinite(Number(text))) return { problem: 'Write a number.' };
      return { value: Number(text) };
    case 'boolean':
      if (text !== 'true' && text !== 'false') return { problem: 'Choose one.' };
      return { value: text === 'true' };
    default:
      try {
        return { value: JSON.parse(text) };
      } catch {
        return { problem: kind === 'choice' ? 'Choose one.' : 'Write JSON, such as ["a", 1].' };
      }
  }
}

/** Sets a value through entries, so that `__proto__` is treated like any other property. */
function withValue(body: unknown, path: readonly string[], value: unknown): unknown {
  const [name, ...innerPath] = path;
  if (name === undefined) return value;
  const entries = isRecord(body) ? Object.entries(body) : [];
  const formerValue = entries.find(([key]) => key === name)?.[1];
  return Object.fromEntries([
    ...entries.filter(([key]) => key !== name),
    [name, withValue(formerValue, innerPath, value)],
  ]);
}

function isRecord(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
