import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const PROBE_TIMEOUT_MS = 5000;
/** One round of probes serves every caller for this long, so that a GET can't be made an amplifier. */
const ROUND_MS = 10_000;

/** Whether each endpoint of the application can be reached: any HTTP answer counts, an error status too. */
export class EndpointHealth {
  readonly #hosts: readonly string[];
  readonly #originOf: (host: string) => string;
  #round: Promise<Record<string, boolean>> | undefined;
  #startedAt = 0;

  constructor(hosts: readonly string[], originOf: (host: string) => string) {
    this.#hosts = hosts;
    this.#originOf = originOf;
  }

  /** The answers of a round that was started at most 10 seconds ago. */
  status(): Promise<Record<string, boolean>> {
    const now = performance.now();
    if (!this.#round || now - this.#startedAt >= ROUND_MS) {
      this.#startedAt = now;
      this.#round = this.#probeAll();
    }
    return this.#round;
  }

  async #probeAll(): Promise<Record<string, boolean>> {
    const probes = this.#hosts.map(async (host) => [host, await isReachable(this.#originOf(host))] as const);
    return Object.fromEntries(await Promise.all(probes));
  }
}

function isReachable(origin: string): Promise<boolean> {
  const get = origin.startsWith('https:') ? getHttps : getHttp;
  return new Promise((resolve) => {
    // The signal bounds the whole probe: name, connection, TLS and the first line of the answer.
    const request = get(origin, { agent: false, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    request.once('response', (response) => {
      response.destroy();
      resolve(true);
    });
    request.once('error', () => resolve(false));
    // A protocol switch is neither.
    request.once('close', () => resolve(false));
  });
}
