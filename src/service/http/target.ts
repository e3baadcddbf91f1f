/** The valid forms of a request target (RFC 9112, section 3.2). */

/** A path with an optional query. RFC 9112 allows no fragment, RFC 3986 only printable ASCII. */
const ORIGIN_FORM = /^\/[!"$-~]*$/;
/** Scheme, authority, then path and query. */
const ABSOLUTE_FORM = /^(https?:\/\/[^/?]+)([/?].*)?$/i;

/**
 * Normalises a request target to the form that the router expects: a path with an optional query. An absolute
 * target (`http://host/path`) becomes its path; `OPTIONS *` stays unchanged.
 *
 * The router would parse any other form with Node's legacy URL parser, which throws an error for some targets
 * and prints others in a warning.
 *
 * @returns null if the target is invalid
 */
export function originForm(method: string | undefined, target: string): string | null {
  if (ORIGIN_FORM.test(target)) return target;
  if (method === 'OPTIONS' && target === '*') return target;
  const [, origin = '', pathAndQuery = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (!isOrigin(origin)) return null;
  const path = pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
  return ORIGIN_FORM.test(path) ? path : null;
}

/**
 * Returns whether the text is an origin. Credentials in an http URL are an error (RFC 9110, section 4.2.4).
 */
function isOrigin(text: string): boolean {
  return /^[!"$-?A-~]+$/.test(text) && URL.canParse(text);
}
