/**
 * Makes the metrics that front end and backend share, in OpenMetrics, for a Prometheus on the same machine.
 */
import {
  Counter,
  collectDefaultMetrics,
  Histogram,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';
import type { RequestEnd } from 'sui-enclave-service/http/in_flight';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';

/** Upper bounds of durations, in seconds. */
const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32];
/** Codes of errors that every HTTP service in this project can answer with, besides its own. */
const SERVICE_CODES = ['OVERLOADED', 'ANSWER_TIMEOUT', 'INTERNAL'];
/** Outcomes besides codes: the request succeeded, the caller left, or another error occurred. */
const OUTCOMES = ['OK', 'LEFT', 'OTHER'];

export class ProverMetrics<Part extends string> {
  readonly registry = new Registry<OpenMetricsContentType>();
  readonly #route: string;
  readonly #codes: ReadonlySet<string>;
  readonly #requests: Counter<'code'>;
  readonly #seconds: Histogram<'part'>;

  /**
   * @param prefix prefix of the metrics' names, without the last `_`
   * @param route route whose requests are counted
   * @param codes codes of the service's errors
   * @param parts names of the timed parts of the work on a request
   */
  constructor(prefix: string, route: string, codes: readonly string[], parts: readonly Part[]) {
    this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#route = route;
    this.#codes = new Set([...codes, ...SERVICE_CODES]);
    const help = 'Requests by outcome: OK, the code of an error, LEFT if the caller left, or OTHER.';
    this.#requests = new Counter({ name: `${prefix}_requests_total`, help, labelNames: ['code'], registers });
    // Counters start at zero, so that the first request is visible as a change.
    for (const code of [...OUTCOMES, ...this.#codes]) this.#requests.inc({ code }, 0);
    this.#seconds = new Histogram({
      name: `${prefix}_part_seconds`,
      help: 'Durations of the parts of the work on a request.',
      labelNames: ['part'],
      buckets: SECONDS,
      registers,
    });
    for (const part of parts) this.#seconds.zero({ part });
  }

  countRequest({ route, status, code = 'OTHER', isComplete }: RequestEnd): void {
    if (route !== this.#route) return;
    const outcome = status < 400 ? 'OK' : this.#codes.has(code) ? code : 'OTHER';
    this.#requests.inc({ code: isComplete ? outcome : 'LEFT' });
  }

  observePart(part: Part, ms: number): void {
    this.#seconds.observe({ part }, ms / 1000);
  }

  /** @throws ConfigError if it can't listen on the port */
  async serve(port: number): Promise<MetricsListener> {
    const { registry } = this;
    const contentType = registry.contentType;
    return await serveMetrics({
      port,
      expose: async () => ({ contentType, text: await registry.metrics() }),
    });
  }
}
