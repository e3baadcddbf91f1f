/** A limit on the requests that an application sends to an upstream, across all callers. */
import { ServerError } from './errors.ts';
import { RateLimit } from './rate_limit.ts';
import { type Env, integerBetween, readSettings, type SettingTable } from './settings.ts';

export const BUDGET_SETTINGS = {
  UPSTREAM_CALLS_PER_MINUTE: {
    schema: integerBetween(1, 100_000),
    default: '60',
    meaning:
      "maximum number of requests that an application with [a budget](../apps/README.md#asking-an-endpoint) sends to its upstream in a minute, in bursts or spread out. Further calls are answered with 503. Health checks don't count",
  },
} as const satisfies SettingTable;

/** The only key: all callers share the budget. */
const ALL = '';

/**
 * Creates the budget of an upstream: `UPSTREAM_CALLS_PER_MINUTE` requests a minute, in bursts or spread out
 * (a token bucket).
 *
 * @returns a function that takes one request from the budget. If none is left, it throws
 *   UPSTREAM_BUDGET_EXCEEDED
 * @throws ConfigError
 */
export function createBudget(env: Env): () => void {
  const limit = new RateLimit(readSettings(BUDGET_SETTINGS, env).UPSTREAM_CALLS_PER_MINUTE);
  return () => {
    const retryAfterSeconds = limit.take(ALL);
    if (retryAfterSeconds > 0) {
      const message = 'too many requests to the upstream service: try again later';
      throw new ServerError('UPSTREAM_BUDGET_EXCEEDED', message, { retryAfterSeconds });
    }
  };
}
