/** A limit on the requests that an application sends to an upstream, across all callers. */
import { type Env, integer } from './env.ts';
import { ServerError } from './errors.ts';
import { RateLimit } from './rate_limit.ts';

/** The only key: all callers share the budget. */
const ALL = '';

/**
 * The budget of an upstream: `UPSTREAM_CALLS_PER_MINUTE` requests a minute, in bursts or spread out (a token bucket). A
 * request beyond that throws UPSTREAM_BUDGET_EXCEEDED and is not sent.
 *
 * @throws ConfigError
 */
export function budgetFrom(env: Env): () => void {
  const perMinute = integer(env, 'UPSTREAM_CALLS_PER_MINUTE', { from: 1, to: 100_000, otherwise: 60 });
  const limit = new RateLimit(perMinute);
  return () => {
    const retryAfterSeconds = limit.take(ALL);
    if (retryAfterSeconds > 0) {
      const message = 'too many requests to the upstream service: try again later';
      throw new ServerError('UPSTREAM_BUDGET_EXCEEDED', message, { retryAfterSeconds });
    }
  };
}
