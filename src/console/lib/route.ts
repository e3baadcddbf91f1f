/**
 * The view and the fields that the address names: `#/enclave?url=…`. A link fills fields in, and sends
 * nothing. The fields are those of all views, so that they stay in another one.
 */

export const VIEWS = ['enclave', 'call', 'chain'] as const;
export type View = (typeof VIEWS)[number];

/**
 * Fields that a link may fill in: the address of an enclave, a node, a config, and an object or transaction.
 * Roots and registers are not among them: they decide whom to trust, so a link that named them would decide
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

/** Drops fields that no view has, that come twice, or that are too long. */
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

/** Writes the link to a view, with the fields that are not empty. */
export function linkTo(view: View, fields: Fields = {}): string {
  const filled = FIELDS.flatMap((name) => (fields[name] ? [[name, fields[name]]] : []));
  const query = new URLSearchParams(filled).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}
