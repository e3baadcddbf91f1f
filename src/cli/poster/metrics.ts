/** A poster's figures, for Prometheus (OpenMetrics). */
import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import { isConfigError } from 'sui-enclave/errors';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';
import type { GasBudget, GasCode } from '../rounds/budget.ts';
import { ALERTS, type AlertCode } from './alerts.ts';
import { PosterFileError } from './file.ts';
import type { Report } from './round.ts';

const PREFIX = 'sui_enclave_poster';
const CODES = Object.keys(ALERTS) as AlertCode[];
const WINDOWS = { hour: 'GAS_AN_HOUR', day: 'GAS_A_DAY' } as const satisfies Record<string, GasCode>;

export class Metrics {
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #rounds: Counter;
  readonly #failedRounds: Counter;
  readonly #posted: Counter;
  readonly #failed: Counter;
  readonly #values: Gauge;
  readonly #inFlight: Gauge;
  readonly #lastRound: Gauge;
  readonly #lastValue: Gauge;
  readonly #alerts: Gauge<'code'>;

  constructor(gas: Pick<GasBudget, 'spent' | 'left'>) {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    this.#rounds = this.#counter('rounds_total', 'Rounds.');
    this.#failedRounds = this.#counter('failed_rounds_total', 'Rounds in which no node could be used.');
    this.#posted = this.#counter('posted_total', 'Transactions that wrote a value.');
    this.#failed = this.#counter('failed_total', 'Transactions that were executed and failed.');
    this.#gas('gas_mist', 'Gas budgets of what was signed in the window, in MIST.', (code) =>
      gas.spent(code),
    );
    this.#gas('gas_left_mist', 'What the limit of the window leaves, in MIST.', (code) => gas.left(code));
    this.#values = this.#gauge('values', 'Enclaves that gave a valid value in the last round.');
    this.#inFlight = this.#gauge('in_flight', 'Signed transactions without an end.');
    this.#lastRound = this.#gauge('last_round_seconds', 'End of the last round, in Unix time.');
    this.#lastValue = this.#gauge('last_value_seconds', 'Time of the newest written value, in Unix time.');
    this.#alerts = new Gauge({
      name: `${PREFIX}_alerts`,
      help: 'Alerts and warnings of the last round.',
      labelNames: ['code'],
      registers: [this.#registry],
    });
    for (const code of CODES) this.#alerts.set({ code }, 0);
  }

  /** @param report undefined for an unexpected failure @param now the time in milliseconds since 1970 */
  note(report: Report | undefined, now: number): void {
    this.#rounds.inc();
    if (report === undefined || report.hasFailed) this.#failedRounds.inc();
    if (report === undefined) return;
    const posted = report.done.filter(({ result }) => result === 'posted');
    this.#posted.inc(posted.length);
    this.#failed.inc(report.done.filter(({ result }) => result === 'failed').length);
    for (const { timestampMs } of posted) this.#lastValue.set(Number(timestampMs) / 1000);
    this.#lastRound.set(now / 1000);
    this.#values.set(report.values);
    this.#inFlight.set(report.inFlight);
    for (const code of CODES) {
      this.#alerts.set({ code }, report.alerts.filter((alert) => alert.code === code).length);
    }
  }

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  /** Serves `GET /metrics` on loopback. @throws PosterFileError if it can't listen there */
  async serve(port: number): Promise<MetricsListener> {
    const { contentType } = this.#registry;
    const expose = async () => ({ contentType, text: await this.text() });
    try {
      return await serveMetrics({ port, expose, setting: 'metrics_port' });
    } catch (error) {
      throw isConfigError(error) ? new PosterFileError(error.message) : error;
    }
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `${PREFIX}_${name}`, help, registers: [this.#registry] });
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `${PREFIX}_${name}`, help, registers: [this.#registry] });
  }

  /** Adds a gauge of both windows in which gas is limited. */
  #gas(name: string, help: string, read: (code: GasCode) => bigint): void {
    new Gauge({
      name: `${PREFIX}_${name}`,
      help,
      labelNames: ['window'],
      registers: [this.#registry],
      collect() {
        for (const [window, code] of Object.entries(WINDOWS)) this.set({ window }, Number(read(code)));
      },
    });
  }
}
