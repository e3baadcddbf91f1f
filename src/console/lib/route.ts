/**
 * The view and the fields that the address names: `#/enclave?url=…`. A link fills fields in, and sends
 * nothing.
 */

export const VIEWS = ['enclave', 'call', 'chain'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Fields that a link may fill in. Neither roots nor registers: they decide whom to trust, so a link that
 * named them would decide its own verdict.
 */
const FIELDS: Readonly<Record<View, readonly string[]>> = {
  enclave: ['url', 'config', 'node'],
  call: ['url'],
  chain: ['config', 'node'],
};
/** Maximum length of a field, in characters. */
const MAX_FIELD = 2048;

/** Drops fields that the view does not have, that come twice, or that are too long. */
export function readRoute(hash: string): Route {
  const [, path = '', query = ''] = /^#?\/?([a-z]*)(?:\?(.*))?$/s.exec(hash) ?? [];
  const view = VIEWS.find((name) => name === path) ?? 'enclave';
  const parameters = new URLSearchParams(query);
  const fields = FIELDS[view].flatMap((name) => {
    const [value = '', ...repeatedValues] = parameters.getAll(name);
    return value !== '' && value.length <= MAX_FIELD && repeatedValues.length === 0 ? [[name, value]] : [];
  });
  return { view, fields: Object.fromEntries(fields) };
}

export function linkTo(view: View, fields: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(fields).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}
