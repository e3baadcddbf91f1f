import type { AxiosInstance } from 'axios';
import { isUpstreamError, type Upstreams } from 'sui-enclave-service/upstream';
import { startShared, waitForShared } from 'sui-enclave-service/waiting';

const PROBE_TIMEOUT_MS = 5000;
/**
 * Minimum time between the starts of two rounds, in milliseconds, so that callers can't amplify a GET into
 * many requests.
 */
const ROUND_MS = 10_000;
/** Maximum age of a finished round whose results are returned while the next round runs, in milliseconds. */
const MAX_AGE_MS = 20_000;

type Statuses = Record<string, boolean>;

/**
 * Checks whether each upstream of the application is reachable: any HTTP answer counts, even an error status.
 */
export class UpstreamHealth {
  readonly #clients: readonly (readonly [host: string, client: AxiosInstance])[];
  #round: Promise<Statuses> | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #finished: { readonly statuses: Statuses; readonly startedAt: number } | undefined;

  constructor(hosts: readonly string[], upstream: Upstreams, timeoutMs: number = PROBE_TIMEOUT_MS) {
    this.#clients = hosts.map((host) => [host, upstream(host, { timeoutMs, maxSize: 0 })]);
  }

  /**
   * Returns the results of the last finished round if it started at most 20 seconds ago. Otherwise waits for
   * a round.
   *
   * @throws OVERLOADED if too many requests wait for the round that another caller has started
   */
  async status(): Promise<Statuses> {
    const now = performance.now();
    const running = this.#round;
    const started = !running && now - this.#startedAt >= ROUND_MS ? this.#start(now) : undefined;
    if (this.#finished && now - this.#finished.startedAt < MAX_AGE_MS) return this.#finished.statuses;
    return await (started ?? waitForShared(running as Promise<Statuses>));
  }

  #start(startedAt: number): Promise<Statuses> {
    this.#startedAt = startedAt;
    const round = startShared(() => this.#probeAll());
    this.#round = round;
    // Callers that wait for the round learn why it failed, and the next caller starts another round.
    round
      .then((statuses) => {
        this.#finished = { statuses, startedAt };
      })
      .catch(() => {
        this.#startedAt = Number.NEGATIVE_INFINITY;
      })
      .finally(() => {
        this.#round = undefined;
      });
    return round;
  }

  async #probeAll(): Promise<Statuses> {
    const probes = this.#clients.map(async ([host, client]) => [host, await isReachable(client)] as const);
    return Object.fromEntries(await Promise.all(probes));
  }
}

async function isReachable(client: AxiosInstance): Promise<boolean> {
  try {
    await client.head('/');
    return true;
  } catch (error) {
    if (!isUpstreamError(error)) throw error;
    // The other reasons occur only after an answer has begun.
    return error.reason !== 'unreachable' && error.reason !== 'timeout';
  }
}
