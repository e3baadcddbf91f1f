import { ExchangeFailed, type Upstream } from './upstream.ts';

const PROBE_TIMEOUT_MS = 5000;
/** One round of probes serves all callers for this long, so that a GET can't serve as an amplifier. */
const ROUND_MS = 10_000;

/** Whether each endpoint of the application is reachable: any HTTP answer counts, even an error status. */
export class EndpointHealth {
  readonly #hosts: readonly string[];
  readonly #upstream: (host: string) => Upstream;
  readonly #timeoutMs: number;
  #round: Promise<Record<string, boolean>> | undefined;
  #startedAt = 0;

  constructor(
    hosts: readonly string[],
    upstream: (host: string) => Upstream,
    timeoutMs: number = PROBE_TIMEOUT_MS,
  ) {
    this.#hosts = hosts;
    this.#upstream = upstream;
    this.#timeoutMs = timeoutMs;
  }

  /** The results of a round that started at most 10 seconds ago. */
  status(): Promise<Record<string, boolean>> {
    const now = performance.now();
    if (!this.#round || now - this.#startedAt >= ROUND_MS) {
      this.#startedAt = now;
      this.#round = this.#probeAll();
    }
    return this.#round;
  }

  async #probeAll(): Promise<Record<string, boolean>> {
    const probes = this.#hosts.map(async (host) => [host, await this.#isReachable(host)] as const);
    return Object.fromEntries(await Promise.all(probes));
  }

  async #isReachable(host: string): Promise<boolean> {
    const bounds = { timeoutMs: this.#timeoutMs, maxSize: 0 };
    try {
      await this.#upstream(host)('/', { method: 'HEAD', ...bounds });
      return true;
    } catch (error) {
      if (!(error instanceof ExchangeFailed)) throw error;
      // The other reasons occur only after an answer has begun.
      return error.reason !== 'unreachable' && error.reason !== 'timeout';
    }
  }
}
