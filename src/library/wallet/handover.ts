/**
 * The protocol between the redirect page and the page that began a login. The redirect page loads this
 * module, so it imports nothing.
 */

/**
 * Returns the name of a login's BroadcastChannel. Only the provider and the two pages know `state`, which
 * contains no secret.
 */
export function channelName(state: string): string {
  return `sui-enclave/wallet/${state}`;
}

/** The redirect page's message: the URL to which the provider sent the user, or the body of a form_post. */
export interface HandedAnswer {
  readonly kind: 'answer';
  readonly answer: string;
}

/** Acknowledgement by the page that began the login. */
export interface Acknowledgement {
  readonly kind: 'taken';
}

/**
 * Returns the kind of a message, which may have any form: every page of this origin that knows the state can
 * send messages.
 */
export function readKind(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'kind' in data ? data.kind : undefined;
}

/** The session storage's entry about a login in this tab, without a window: where the login continues. */
export interface Pointer {
  readonly wallet: string;
  readonly state: string;
  /** The page that began the login. */
  readonly returnTo: string;
}

/**
 * The session storage's entry with the answer to a login in this tab. The page that began the login removes
 * it when it is loaded again.
 */
export interface StoredAnswer {
  readonly wallet: string;
  readonly answer: string;
}

export const POINTER_KEY = 'sui-enclave/wallet/redirect';
export const ANSWER_KEY = 'sui-enclave/wallet/answer';

/**
 * Returns the entry of the session storage if it has a string for each of these names. Any other entry counts
 * as absent, and so does every entry if the browser blocks the storage.
 */
export function readEntry<Name extends string>(
  key: string,
  names: readonly Name[],
): Readonly<Record<Name, string>> | null {
  const value = readJson(key);
  return hasStrings(value, names) ? value : null;
}

function hasStrings<Name extends string>(
  value: unknown,
  names: readonly Name[],
): value is Readonly<Record<Name, string>> {
  if (typeof value !== 'object' || value === null) return false;
  const entries = new Map<string, unknown>(Object.entries(value));
  return names.every((name) => typeof entries.get(name) === 'string');
}

function readJson(key: string): unknown {
  try {
    // A browser that blocks the storage throws when a page reads the property.
    return JSON.parse(sessionStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}
