/** A limit on the requests of each caller. */

/**
 * Maximum number of callers that are remembered. Beyond it, the least recently active caller is forgotten
 * first.
 */
const MAX_KEYS = 100_000;
const MINUTE_MS = 60_000;

/**
 * Limits the requests for each key to `perMinute`, in bursts or spread out: a token bucket that is full again
 * after a minute.
 */
export class RateLimit {
  readonly #perMinute: number;
  readonly #now: () => number;
  /** Times at which the allowances of keys are full again; sorted by last use. */
  readonly #fullAt = new Map<string, number>();

  /** @param now a monotonic clock in milliseconds */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /**
   * Takes one request from the allowance of a key.
   *
   * @returns 0 if the request is allowed, otherwise the seconds until the next request is allowed. Refusals
   *   cost nothing
   */
  take(key: string): number {
    const now = this.#now();
    const perRequest = MINUTE_MS / this.#perMinute;
    const fullAt = Math.max(this.#fullAt.get(key) ?? now, now) + perRequest;
    const wait = fullAt - now - MINUTE_MS;
    // Ignore rounding errors of the sums.
    if (wait > 0.001) return Math.ceil(wait / 1000);
    this.#fullAt.delete(key);
    this.#fullAt.set(key, fullAt);
    if (this.#fullAt.size > MAX_KEYS) {
      const [leastRecentKey] = this.#fullAt.keys();
      this.#fullAt.delete(leastRecentKey as string);
    }
    return 0;
  }
}
