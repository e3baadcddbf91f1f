/** A keeper's counters, for Prometheus (text exposition format 0.0.4). */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { ALERTS, type AlertCode } from './alerts.ts';
import { KeeperFileError } from './file.ts';
import type { Report } from './round.ts';

type Kind = 'counter' | 'gauge';

export class Metrics {
  readonly #spent: () => bigint;
  #rounds = 0;
  #failedRounds = 0;
  #registered = 0;
  #destroyed = 0;
  #lastRoundMs = 0;
  #last: Pick<Report, 'alerts' | 'accepted' | 'silent'> = { alerts: [], accepted: 0, silent: 0 };

  /** @param spent the gas of the last 24 hours, in MIST */
  constructor(spent: () => bigint) {
    this.#spent = spent;
  }

  /** @param report undefined: an unexpected failure @param now in milliseconds since 1970 */
  note(report: Report | undefined, now: number): void {
    this.#rounds += 1;
    if (report === undefined || report.hasFailed) this.#failedRounds += 1;
    if (report === undefined) return;
    const own = report.done.filter(({ result }) => result === 'done');
    this.#registered += own.filter(({ kind }) => kind === 'register').length;
    this.#destroyed += own.filter(({ kind }) => kind === 'destroy').length;
    this.#lastRoundMs = now;
    this.#last = report;
  }

  text(): string {
    const codes = Object.keys(ALERTS) as AlertCode[];
    const alerts = codes.map((code): [string, number] => [
      `{code="${code}"}`,
      this.#last.alerts.filter((alert) => alert.code === code).length,
    ]);
    return [
      metric('rounds_total', 'counter', 'Rounds.', this.#rounds),
      metric('failed_rounds_total', 'counter', 'Rounds after which it waited longer.', this.#failedRounds),
      metric('registered_total', 'counter', 'Enclaves that it registered.', this.#registered),
      metric('destroyed_total', 'counter', 'Enclaves that it destroyed.', this.#destroyed),
      metric('gas_mist', 'gauge', 'Gas of the last 24 hours, in MIST.', this.#spent()),
      metric('accepted_enclaves', 'gauge', 'Registered enclaves that contracts accept.', this.#last.accepted),
      metric('silent_enclaves', 'gauge', 'Of these, the ones that did not answer.', this.#last.silent),
      metric('last_round_seconds', 'gauge', 'End of the last round, in Unix time.', this.#lastRoundMs / 1000),
      metric('alerts', 'gauge', 'Alerts and warnings of the last round.', ...alerts),
    ].join('');
  }
}

function metric(
  name: string,
  kind: Kind,
  help: string,
  ...values: (number | bigint | [labels: string, value: number])[]
): string {
  const whole = `sui_enclave_keeper_${name}`;
  const lines = values.map((value) =>
    Array.isArray(value) ? `${whole}${value[0]} ${value[1]}` : `${whole} ${value}`,
  );
  return [`# HELP ${whole} ${help}`, `# TYPE ${whole} ${kind}`, ...lines, ''].join('\n');
}

/** Serves `GET /metrics` on loopback. @throws KeeperFileError if it can't listen there */
export async function serveMetrics(port: number, text: () => string): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text());
  });
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new KeeperFileError(`metrics_port ${port} can't be used (${code})`);
  }
  return server;
}
