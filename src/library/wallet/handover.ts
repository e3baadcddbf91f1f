/**
 * What the redirect page and the page that began a login agree on. The redirect page loads this, so it imports nothing.
 */

/** The channel of one login. `state` is known to the provider and to the two pages alone, and holds no secret. */
export function channelName(state: string): string {
  return `sui-enclave/wallet/${state}`;
}

/** From the redirect page: the URL to which the provider sent the user, or the body of a form_post. */
export interface HandedAnswer {
  readonly kind: 'answer';
  readonly answer: string;
}

/** From the page that began the login. */
export interface Taken {
  readonly kind: 'taken';
}

/** Of a message, whatever it is: any page of this origin that knows the state can send one. */
export function kindOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'kind' in data ? data.kind : undefined;
}

/** Where a login in this tab, instead of a window of its own, is to be continued: in the session storage. */
export interface Pointer {
  readonly wallet: string;
  readonly state: string;
  /** The page that began the login. */
  readonly returnTo: string;
}

/** The answer to such a login, until that page is loaded again and takes it. */
export interface KeptAnswer {
  readonly wallet: string;
  readonly answer: string;
}

export const POINTER_KEY = 'sui-enclave/wallet/redirect';
export const ANSWER_KEY = 'sui-enclave/wallet/answer';

/** The entry of the session storage, if it holds these names as strings. Anything else counts as absent. */
export function readEntry<Name extends string>(
  key: string,
  names: readonly Name[],
): Readonly<Record<Name, string>> | null {
  const value = parsed(sessionStorage.getItem(key));
  return isRecordOf(value, names) ? value : null;
}

function isRecordOf<Name extends string>(
  value: unknown,
  names: readonly Name[],
): value is Readonly<Record<Name, string>> {
  if (typeof value !== 'object' || value === null) return false;
  const entries = new Map<string, unknown>(Object.entries(value));
  return names.every((name) => typeof entries.get(name) === 'string');
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}
