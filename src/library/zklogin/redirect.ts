/**
 * Reads a provider's answer from a redirect: from the query or fragment of a URL, or the fields of a
 * form_post.
 */
import { ZkLoginError } from './errors.ts';

/** The provider's answer: the URL of the redirect, or the body of a form_post. */
export type Redirect = string | URL | URLSearchParams | FormData;

/**
 * Parameters of an answer. Every answer has a `state`, and a token, a code or an error. A redirect with any
 * of these parameters counts as an answer.
 */
const ANSWER_PARAMETERS: readonly string[] = ['state', 'id_token', 'code', 'error'];

/** Returns whether the redirect has any parameter of an answer, valid or not. */
export function holdsAnswer(redirect: Redirect, redirectUri: string): boolean {
  return listFields(redirect, new URL(redirectUri)).some(([name]) => ANSWER_PARAMETERS.includes(name));
}

/**
 * Reads the answer's parameters.
 *
 * @throws ZkLoginError: ZKLOGIN_REDIRECT for another URL, or a duplicate parameter
 */
export function readParameters(redirect: Redirect, redirectUri: string): ReadonlyMap<string, string> {
  const expected = new URL(redirectUri);
  const url = toUrl(redirect);
  if (url !== null && withoutQuery(url) !== withoutQuery(expected)) {
    throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the URL is not the redirectUri of the login');
  }
  const parameters = new Map<string, string>();
  for (const [name, value] of listFields(redirect, expected)) {
    if (typeof value !== 'string')
      throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the answer has a file among its fields');
    if (parameters.has(name)) throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the answer has a parameter twice');
    parameters.set(name, value);
  }
  return parameters;
}

function listFields(redirect: Redirect, expected: URL): [string, FormDataEntryValue][] {
  if (redirect instanceof URLSearchParams || redirect instanceof FormData) return [...redirect];
  const url = toUrl(redirect);
  // A string that is not a URL is the body of a form_post, or a page's location.hash or location.search.
  if (url === null) return [...new URLSearchParams(String(redirect).replace(/^[#?]/, ''))];
  // Leave out the query parameters of the redirectUri itself.
  const query = [...url.searchParams].filter(([name, value]) => expected.searchParams.get(name) !== value);
  return [...query, ...new URLSearchParams(url.hash.slice(1))];
}

function toUrl(redirect: Redirect): URL | null {
  if (redirect instanceof URLSearchParams || redirect instanceof FormData) return null;
  const text = String(redirect);
  return URL.canParse(text) ? new URL(text) : null;
}

function withoutQuery({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}
