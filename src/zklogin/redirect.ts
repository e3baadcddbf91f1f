/** What a provider sends the user back with: in a URL's query or fragment, or in the fields of a form_post. */
import { RedirectError } from './errors.ts';

export type Redirect = string | URL | URLSearchParams | FormData;

/** Every answer has a `state`, and a token, a code or an error. One of them is enough to look at it. */
const OF_AN_ANSWER: readonly string[] = ['state', 'id_token', 'code', 'error'];

/** Whether there is anything of an answer in it, good or bad. */
export function holdsAnswer(redirect: Redirect, redirectUri: string): boolean {
  return fieldsOf(redirect, new URL(redirectUri)).some(([name]) => OF_AN_ANSWER.includes(name));
}

/** @throws RedirectError for another place, or a parameter given twice */
export function readParameters(redirect: Redirect, redirectUri: string): ReadonlyMap<string, string> {
  const expected = new URL(redirectUri);
  const url = urlOf(redirect);
  if (url !== null && placeOf(url) !== placeOf(expected)) {
    throw new RedirectError('the URL is not the redirectUri that the login was begun with');
  }
  const found = new Map<string, string>();
  for (const [name, value] of fieldsOf(redirect, expected)) {
    if (typeof value !== 'string') throw new RedirectError('the answer has a file among its fields');
    if (found.has(name)) throw new RedirectError('the answer has a parameter twice');
    found.set(name, value);
  }
  return found;
}

function fieldsOf(redirect: Redirect, expected: URL): [string, FormDataEntryValue][] {
  if (redirect instanceof URLSearchParams || redirect instanceof FormData) return [...redirect];
  const url = urlOf(redirect);
  // What is no URL is the body of a form_post, or a page's location.hash or location.search.
  if (url === null) return [...new URLSearchParams(String(redirect).replace(/^[#?]/, ''))];
  // What the redirectUri itself brings along is not the provider's.
  const query = [...url.searchParams].filter(([name, value]) => expected.searchParams.get(name) !== value);
  return [...query, ...new URLSearchParams(url.hash.slice(1))];
}

function urlOf(redirect: Redirect): URL | null {
  if (redirect instanceof URLSearchParams || redirect instanceof FormData) return null;
  const text = String(redirect);
  return URL.canParse(text) ? new URL(text) : null;
}

function placeOf({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}
