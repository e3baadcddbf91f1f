/** Metrics of the watcher, for Prometheus (OpenMetrics). */
import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';
import type { PollResult } from './watch.ts';

const PREFIX = 'sui_enclave_provision';

export class Metrics {
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #polls: Counter<'found'>;
  readonly #lastPoll: Gauge;
  readonly #lacksSecrets: Gauge;

  constructor() {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const registers = [this.#registry];
    this.#polls = new Counter({
      name: `${PREFIX}_polls_total`,
      help: 'Polls of the enclave, by their result.',
      labelNames: ['found'],
      registers,
    });
    const pollResults: readonly PollResult[] = ['claim', 'provisioned', 'refused', 'unreachable'];
    for (const pollResult of pollResults) this.#polls.inc({ found: pollResult }, 0);
    this.#lastPoll = new Gauge({
      name: `${PREFIX}_last_poll_seconds`,
      help: 'End of the last poll, in Unix time.',
      registers,
    });
    this.#lacksSecrets = new Gauge({
      name: `${PREFIX}_lacks_secrets`,
      help: '1: the enclave lacked its secrets at the last poll that reached it, and did not get them.',
      registers,
    });
  }

  /** Counts a poll. @param now the time in milliseconds since 1970 */
  note(pollResult: PollResult, now: number): void {
    this.#polls.inc({ found: pollResult });
    this.#lastPoll.set(now / 1000);
    if (pollResult !== 'unreachable') this.#lacksSecrets.set(pollResult === 'refused' ? 1 : 0);
  }

  /** Serves `GET /metrics` on loopback. @throws ConfigError if it can't listen there */
  async serve(port: number): Promise<MetricsListener> {
    const registry = this.#registry;
    const { contentType } = registry;
    const expose = async () => ({ contentType, text: await registry.metrics() });
    return await serveMetrics({ port, expose, setting: '--metrics-port' });
  }
}
