/** How many requests an application may send to an upstream, whoever asks it for them. */

import { type Env, integer } from './config.ts';
import { ServerError } from './errors.ts';
import type { Upstream } from './upstream.ts';

const MINUTE_MS = 60_000;

/**
 * The same upstream, asked at most `UPSTREAM_CALLS_PER_MINUTE` times a minute: all at once, or spread (a token
 * bucket). A call beyond that throws UPSTREAM_BUDGET_EXCEEDED.
 *
 * @throws ConfigError
 */
export function budgeted(upstream: Upstream, env: Env): Upstream {
  const perMinute = integer(env, 'UPSTREAM_CALLS_PER_MINUTE', { from: 1, to: 100_000, otherwise: 60 });
  const bucket = new TokenBucket(perMinute);
  return async (path, request) => {
    const waitMs = bucket.take();
    if (waitMs > 0) {
      const retryAfterSeconds = Math.ceil(waitMs / 1000);
      const message = 'too many requests to the upstream service: try again later';
      throw new ServerError('UPSTREAM_BUDGET_EXCEEDED', message, { retryAfterSeconds });
    }
    return await upstream(path, request);
  };
}

/** Full at the start, and filled by its size within a minute. */
export class TokenBucket {
  readonly #perMinute: number;
  readonly #now: () => number;
  /** When it is full again, if nothing more is taken. */
  #fullAt = Number.NEGATIVE_INFINITY;

  /** @param now a clock in milliseconds that only goes forward */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** @returns 0 when a token was taken, or the milliseconds until there is one */
  take(): number {
    const now = this.#now();
    const fullAt = Math.max(this.#fullAt, now) + MINUTE_MS / this.#perMinute;
    const waitMs = fullAt - now - MINUTE_MS;
    // A thousandth of a millisecond is the rounding of sums, not a call.
    if (waitMs > 0.001) return waitMs;
    this.#fullAt = fullAt;
    return 0;
  }
}
