/** Reads `DEBUG`, which selects log lines by name, as with the npm package `debug`. */

/**
 * Names of log lines: `zkLogin:info` for each request for a proof, `jwks` for each request for an issuer's
 * keys.
 */
export type LineName = 'zkLogin:info' | 'jwks';

/**
 * Returns a function that tells whether the lines of a name are logged.
 *
 * @param setting patterns separated by commas or spaces. In a pattern, `*` matches anything. A leading `-`
 *   excludes the names that match
 */
export function readDebug(setting: string): (name: LineName) => boolean {
  const patterns = setting.split(/[\s,]+/).filter((pattern) => pattern !== '');
  const excluded = patterns.filter((pattern) => pattern.startsWith('-')).map((pattern) => pattern.slice(1));
  const included = patterns.filter((pattern) => !pattern.startsWith('-'));
  const isAmong = (list: readonly string[], name: string) => list.some((pattern) => matches(pattern, name));
  return (name) => isAmong(included, name) && !isAmong(excluded, name);
}

function matches(pattern: string, name: string): boolean {
  const literals = pattern.split('*').map((piece) => piece.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literals.join('.*')}$`).test(name);
}
