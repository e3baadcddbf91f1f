/** A limit on the requests that an application sends to an upstream, across all callers. */
import { type Env, integer } from './env.ts';
import { ServerError } from './errors.ts';

const MINUTE_MS = 60_000;

/**
 * The budget of an upstream: `UPSTREAM_CALLS_PER_MINUTE` requests a minute, in bursts or spread out (a token bucket). A
 * request beyond that throws UPSTREAM_BUDGET_EXCEEDED and is not sent.
 *
 * @throws ConfigError
 */
export function budgetFrom(env: Env): () => void {
  const perMinute = integer(env, 'UPSTREAM_CALLS_PER_MINUTE', { from: 1, to: 100_000, otherwise: 60 });
  const bucket = new TokenBucket(perMinute);
  return () => {
    const waitMs = bucket.take();
    if (waitMs > 0) {
      const retryAfterSeconds = Math.ceil(waitMs / 1000);
      const message = 'too many requests to the upstream service: try again later';
      throw new ServerError('UPSTREAM_BUDGET_EXCEEDED', message, { retryAfterSeconds });
    }
  };
}

/** Starts full and refills completely within a minute. */
export class TokenBucket {
  readonly #perMinute: number;
  readonly #now: () => number;
  /** When the bucket is full again if no more tokens are taken. */
  #fullAt = Number.NEGATIVE_INFINITY;

  /** @param now a monotonic clock in milliseconds */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** @returns 0 if a token was taken, otherwise the milliseconds until one is available */
  take(): number {
    const now = this.#now();
    const fullAt = Math.max(this.#fullAt, now) + MINUTE_MS / this.#perMinute;
    const waitMs = fullAt - now - MINUTE_MS;
    // Ignores rounding errors of the sums.
    if (waitMs > 0.001) return waitMs;
    this.#fullAt = fullAt;
    return 0;
  }
}
