/** Metrics of a poster, for Prometheus (OpenMetrics). */
import { Counter, Gauge } from 'prom-client';
import type { GasBudget, GasCode } from '../rounds/budget.ts';
import { RoundMetrics } from '../rounds/metrics.ts';
import { ALERTS } from './alerts.ts';
import { PosterFileError } from './file.ts';
import type { Report } from './round.ts';

const WINDOWS = { hour: 'GAS_AN_HOUR', day: 'GAS_A_DAY' } as const satisfies Record<string, GasCode>;

export class Metrics extends RoundMetrics<Report> {
  readonly #posted: Counter;
  readonly #failed: Counter;
  readonly #alertRounds: Counter<'code'>;
  readonly #values: Gauge;
  readonly #inFlight: Gauge;
  readonly #lastValue: Gauge;

  constructor(gas: Pick<GasBudget, 'spent' | 'left'>) {
    const codes = Object.keys(ALERTS);
    super({
      prefix: 'sui_enclave_poster',
      failedRounds: 'Failed rounds, after which the poster waits longer.',
      codes,
      FileError: PosterFileError,
    });
    this.#posted = this.counter('posted_total', 'Transactions that wrote a value.');
    this.#failed = this.counter('failed_total', 'Transactions that were executed and failed.');
    this.#alertRounds = new Counter({
      ...this.describe('alert_rounds_total', 'Rounds that had an alert or warning.'),
      labelNames: ['code'],
    });
    // Each series begins at 0, since Prometheus would see no increase in a series that begins at 1.
    for (const code of codes) this.#alertRounds.inc({ code }, 0);
    this.#gas('gas_mist', 'Gas budgets of the transactions signed in the window, in MIST.', (code) =>
      gas.spent(code),
    );
    this.#gas('gas_left_mist', 'Gas that the limit still allows in the window, in MIST.', (code) =>
      gas.left(code),
    );
    this.#values = this.gauge('values', 'Enclaves that gave a valid value in the last round.');
    this.#inFlight = this.gauge('in_flight', 'Signed transactions whose outcome is not known yet.');
    this.#lastValue = this.gauge('last_value_seconds', 'Time of the newest written value, in Unix time.');
  }

  protected noteReport(report: Report): void {
    const posted = report.done.filter(({ result }) => result === 'posted');
    this.#posted.inc(posted.length);
    this.#failed.inc(report.done.filter(({ result }) => result === 'failed').length);
    for (const code of new Set(report.alerts.map((alert) => alert.code))) this.#alertRounds.inc({ code });
    for (const { timestampMs } of posted) this.#lastValue.set(Number(timestampMs) / 1000);
    this.#values.set(report.values);
    this.#inFlight.set(report.inFlight);
  }

  /** Adds a gauge with a series for each of the two windows in which gas is limited. */
  #gas(name: string, help: string, read: (code: GasCode) => bigint): void {
    new Gauge({
      ...this.describe(name, help),
      labelNames: ['window'],
      collect() {
        for (const [window, code] of Object.entries(WINDOWS)) this.set({ window }, Number(read(code)));
      },
    });
  }
}
