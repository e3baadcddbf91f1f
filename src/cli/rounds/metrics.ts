/** The metrics that keeper and poster share, for Prometheus (OpenMetrics). */
import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import { isConfigError } from 'sui-enclave/errors';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';
import type { RoundAlert, RoundReport } from './loop.ts';

export interface RoundMetricsOptions {
  /** Beginning of every name. */
  readonly prefix: string;
  /** Text of `failed_rounds_total`: what counts as a failure. */
  readonly failedRounds: string;
  /** Codes of the alerts, each of which has a series from the start. */
  readonly codes: readonly string[];
  /** Class of the error about the file with `metrics_port`. */
  readonly FileError: new (
    message: string,
  ) => Error;
}

export abstract class RoundMetrics<Report extends RoundReport<RoundAlert>> {
  readonly #options: RoundMetricsOptions;
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #rounds: Counter;
  readonly #failedRounds: Counter;
  readonly #lastRound: Gauge;
  readonly #alerts: Gauge<'code'>;

  constructor(options: RoundMetricsOptions) {
    this.#options = options;
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    this.#rounds = this.counter('rounds_total', 'Rounds.');
    this.#failedRounds = this.counter('failed_rounds_total', options.failedRounds);
    this.#lastRound = this.gauge('last_round_seconds', 'End of the last round, in Unix time.');
    this.#alerts = new Gauge({
      ...this.describe('alerts', 'Alerts and warnings of the last round.'),
      labelNames: ['code'],
    });
    for (const code of options.codes) this.#alerts.set({ code }, 0);
  }

  /**
   * Records a round.
   *
   * @param report undefined for an unexpected failure
   * @param now the time in milliseconds since 1970
   */
  note(report: Report | undefined, now: number): void {
    this.#rounds.inc();
    if (report === undefined || report.hasFailed) this.#failedRounds.inc();
    if (report === undefined) return;
    this.#lastRound.set(now / 1000);
    for (const code of this.#options.codes) {
      this.#alerts.set({ code }, report.alerts.filter((alert) => alert.code === code).length);
    }
    this.noteReport(report);
  }

  /** Records the metrics of a round that only this kind of process has. */
  protected abstract noteReport(report: Report): void;

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  /** Serves `GET /metrics` on loopback. @throws an error of `FileError` if it can't listen there */
  async serve(port: number): Promise<MetricsListener> {
    const { contentType } = this.#registry;
    const expose = async () => ({ contentType, text: await this.text() });
    try {
      return await serveMetrics({ port, expose, setting: 'metrics_port' });
    } catch (error) {
      throw isConfigError(error) ? new this.#options.FileError(error.message) : error;
    }
  }

  protected counter(name: string, help: string): Counter {
    return new Counter(this.describe(name, help));
  }

  protected gauge(name: string, help: string): Gauge {
    return new Gauge(this.describe(name, help));
  }

  /** Returns the name, the help text and the registry of a metric. */
  protected describe(name: string, help: string) {
    return { name: `${this.#options.prefix}_${name}`, help, registers: [this.#registry] };
  }
}
