/** A keeper's metrics, for Prometheus (OpenMetrics). */
import { type Counter, Gauge } from 'prom-client';
import { RoundMetrics } from '../rounds/metrics.ts';
import { ALERTS } from './alerts.ts';
import { KeeperFileError } from './file.ts';
import type { Report } from './round.ts';

/** Gas of the keeper, in MIST. */
export interface Gas {
  /** Returns the sum of the gas budgets that were signed in the last 24 hours. */
  spent(): bigint;
  /** Returns the part of `gas_a_day` that may still be signed. */
  left(): bigint;
}

export class Metrics extends RoundMetrics<Report> {
  readonly #registered: Counter;
  readonly #destroyed: Counter;
  readonly #accepted: Gauge;
  readonly #silent: Gauge;

  constructor(gas: Gas) {
    super({
      prefix: 'sui_enclave_keeper',
      failedRounds: 'Failed rounds, after which the keeper waits longer.',
      codes: Object.keys(ALERTS),
      FileError: KeeperFileError,
    });
    this.#registered = this.counter('registered_total', 'Enclaves that the keeper registered.');
    this.#destroyed = this.counter('destroyed_total', 'Enclaves that the keeper destroyed.');
    this.#gas('gas_mist', 'Sum of the gas budgets that were signed in the last 24 hours, in MIST.', () =>
      gas.spent(),
    );
    this.#gas('gas_left_mist', 'Gas that may still be signed under gas_a_day, in MIST.', () => gas.left());
    this.#accepted = this.gauge('accepted_enclaves', 'Registered enclaves that contracts accept.');
    this.#silent = this.gauge('silent_enclaves', 'Accepted enclaves that did not answer.');
  }

  protected noteReport(report: Report): void {
    const ownActions = report.done.filter(({ result: outcome }) => outcome === 'done');
    this.#registered.inc(ownActions.filter(({ kind }) => kind === 'register').length);
    this.#destroyed.inc(ownActions.filter(({ kind }) => kind === 'destroy').length);
    this.#accepted.set(report.accepted);
    this.#silent.set(report.silent);
  }

  #gas(name: string, help: string, read: () => bigint): void {
    new Gauge({
      ...this.describe(name, help),
      collect() {
        this.set(Number(read()));
      },
    });
  }
}
