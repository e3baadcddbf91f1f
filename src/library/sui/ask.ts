/**
 * Sends one request, which a signal can end, to a node, and refuses answers that can't be used. Browser-safe.
 */
import { SuiError } from './errors.ts';
import { toSuiError } from './failures.ts';
import { invalidValue } from './values.ts';

/** Options of a read from a node: a signal that ends it. */
export interface AskOptions {
  /** Ends the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Maximum number of pages, more than any list has. Without this limit, a node that always names a next page
 * would keep the caller waiting for ever.
 */
export const MAX_PAGES = 100_000;

/**
 * Sends one request, and returns its answer.
 *
 * @throws SuiError; the reason of the signal, once the signal is aborted
 */
export async function askNode<T>(
  { signal }: AskOptions,
  ask: (options: { signal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw invalidValue('"signal" must be an AbortSignal');
  }
  signal?.throwIfAborted();
  try {
    return await ask(signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw toSuiError(error);
  }
}

/** Returns the request's option for the maximum size of a page. @throws SuiError: SUI_VALUE */
export function pageLimit(limit: number | undefined): { limit?: number } {
  if (limit === undefined) return {};
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw invalidValue('"limit" must be an integer of at least 1');
  return { limit };
}

export function badAnswer(message: string): SuiError {
  return new SuiError('SUI_NODE_ANSWER', message);
}
