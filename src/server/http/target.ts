/** The forms that a request target may have (RFC 9112, section 3.2). */

/** A path with an optional query; RFC 9112 allows no fragment, and RFC 3986 nothing outside printable ASCII. */
const ORIGIN_FORM = /^\/[!"$-~]*$/;
/** Scheme, authority, then path and query. */
const ABSOLUTE_FORM = /^(https?:\/\/[^/?]+)([/?].*)?$/i;

/**
 * Brings a request target to the one form that the router works with: a path with an optional query.
 * An absolute target (`http://host/path`) becomes its path, `OPTIONS *` stays as it is.
 *
 * The router would parse anything else with Node's legacy URL parser, which throws for some of it and
 * prints the URL of some.
 *
 * @returns null when the target has no valid form
 */
export function originForm(method: string | undefined, target: string): string | null {
  if (ORIGIN_FORM.test(target)) return target;
  if (method === 'OPTIONS' && target === '*') return target;
  const [, origin = '', rest = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (!isOrigin(origin)) return null;
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  return ORIGIN_FORM.test(path) ? path : null;
}

/** Credentials in an http URL are an error (RFC 9110, section 4.2.4). */
function isOrigin(text: string): boolean {
  return /^[!"$-?A-~]+$/.test(text) && URL.canParse(text);
}
