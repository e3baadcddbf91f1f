/** A keeper's figures, for Prometheus (OpenMetrics). */
import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import { isConfigError } from 'sui-enclave/errors';
import { type MetricsListener, serveMetrics } from 'sui-enclave-service/http/metrics_listener';
import { ALERTS, type AlertCode } from './alerts.ts';
import { KeeperFileError } from './file.ts';
import type { Report } from './round.ts';

const PREFIX = 'sui_enclave_keeper';
const CODES = Object.keys(ALERTS) as AlertCode[];

/** Gas of the keeper, in MIST. */
export interface Gas {
  /** Returns the budgets of the transactions that were signed in the last 24 hours. */
  spent(): bigint;
  /** Returns the part of `gas_a_day` that may still be signed, in MIST. */
  left(): bigint;
}

export class Metrics {
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #rounds: Counter;
  readonly #failedRounds: Counter;
  readonly #registered: Counter;
  readonly #destroyed: Counter;
  readonly #accepted: Gauge;
  readonly #silent: Gauge;
  readonly #lastRound: Gauge;
  readonly #alerts: Gauge<'code'>;

  constructor(gas: Gas) {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    this.#rounds = this.#counter('rounds_total', 'Rounds.');
    this.#failedRounds = this.#counter('failed_rounds_total', 'Rounds after which it waited longer.');
    this.#registered = this.#counter('registered_total', 'Enclaves that it registered.');
    this.#destroyed = this.#counter('destroyed_total', 'Enclaves that it destroyed.');
    this.#gauge('gas_mist', 'Gas budgets of what was signed in the last 24 hours, in MIST.', () =>
      gas.spent(),
    );
    this.#gauge('gas_left_mist', 'What gas_a_day leaves of the present 24 hours, in MIST.', () => gas.left());
    this.#accepted = this.#gauge('accepted_enclaves', 'Registered enclaves that contracts accept.');
    this.#silent = this.#gauge('silent_enclaves', 'Of these, the ones that did not answer.');
    this.#lastRound = this.#gauge('last_round_seconds', 'End of the last round, in Unix time.');
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
    const ownActions = report.done.filter(({ result }) => result === 'done');
    this.#registered.inc(ownActions.filter(({ kind }) => kind === 'register').length);
    this.#destroyed.inc(ownActions.filter(({ kind }) => kind === 'destroy').length);
    this.#lastRound.set(now / 1000);
    this.#accepted.set(report.accepted);
    this.#silent.set(report.silent);
    for (const code of CODES) {
      this.#alerts.set({ code }, report.alerts.filter((alert) => alert.code === code).length);
    }
  }

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  /** Serves `GET /metrics` on loopback. @throws KeeperFileError if it can't listen there */
  async serve(port: number): Promise<MetricsListener> {
    const { contentType } = this.#registry;
    const expose = async () => ({ contentType, text: await this.text() });
    try {
      return await serveMetrics({ port, expose, setting: 'metrics_port' });
    } catch (error) {
      throw isConfigError(error) ? new KeeperFileError(error.message) : error;
    }
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `${PREFIX}_${name}`, help, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, read?: () => bigint): Gauge {
    return new Gauge({
      name: `${PREFIX}_${name}`,
      help,
      registers: [this.#registry],
      ...(read && {
        collect() {
          this.set(Number(read()));
        },
      }),
    });
  }
}
