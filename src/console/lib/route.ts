/**
 * Reads and writes the view and the fields in the page's address: `#/enclave?url=…`. A link fills in fields,
 * but sends nothing. All views share the fields, so that values stay when the view changes.
 */

export const VIEWS = ['enclave', 'call', 'chain'] as const;
export type View = (typeof VIEWS)[number];

/**
 * Fields that a link may fill in: the addresses of an enclave and a node, a config, and an object or a
 * transaction. A link can't fill in root and registers. They determine trust, so such a link would determine
 * its own verdict.
 */
export const FIELDS = ['url', 'node', 'config', 'id'] as const;
export type Field = (typeof FIELDS)[number];
export type Fields = Readonly<Partial<Record<Field, string>>>;

export interface Route {
  readonly view: View;
  readonly fields: Fields;
}

/** Maximum length of a field, in characters. */
const MAX_FIELD = 2048;

/** Reads a fragment. Ignores fields that are unknown, duplicate or too long. */
export function readRoute(hash: string): Route {
  const [, path = '', query = ''] = /^#?\/?([a-z]*)(?:\?(.*))?$/s.exec(hash) ?? [];
  const view = VIEWS.find((name) => name === path) ?? 'enclave';
  const parameters = new URLSearchParams(query);
  const fields = FIELDS.flatMap((name) => {
    const [value = '', ...repeatedValues] = parameters.getAll(name);
    return value !== '' && value.length <= MAX_FIELD && repeatedValues.length === 0 ? [[name, value]] : [];
  });
  return { view, fields: Object.fromEntries(fields) };
}

/** Formats the link to a view, with the fields that are not empty. */
export function linkTo(view: View, fields: Fields = {}): string {
  const filled = FIELDS.flatMap((name) => (fields[name] ? [[name, fields[name]]] : []));
  const query = new URLSearchParams(filled).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}
