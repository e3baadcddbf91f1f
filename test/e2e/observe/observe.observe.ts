/**
 * Tests the metrics and alerts for operators. Each alert fires for its own fault alone, and every expression
 * of the board selects at least one series.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { BOARD } from '../../../scripts/docs/observe_board.ts';
import {
  changing,
  constant,
  FOLDER,
  growing,
  isInstalled,
  parseSeries,
  type RuleTest,
  run,
  type Series,
  temporaryFolder,
  testRules,
} from './promtool.ts';
import { collectScrapes, KEEPER_CODES, POSTER_CODES } from './scrapes.ts';

const NAME = isInstalled ? 'promtool' : 'promtool (skipped: Debian’s package prometheus is not installed)';
const FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})';

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity?: string };
  readonly annotations: { readonly summary?: string; readonly runbook?: string };
}
const alertsText = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
const { groups } = parse(alertsText) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { scrape_configs: jobs } = parse(readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')) as {
  scrape_configs: {
    job_name: string;
    static_configs: { targets: [string]; labels?: Record<string, string> }[];
  }[];
};

/**
 * Faults by the alert that each must raise. During a fault, the series that match a pattern have its values.
 */
const FAULTS: Readonly<Record<string, readonly [series: RegExp, values: string][]>> = {
  EnclaveSilent: [[/^up\{job="enclave".*blue/, constant(0)]],
  EnclaveClosed: [[/^relay_listening\{enclave="green"/, constant(0)]],
  EnclaveFiguresOld: [[/^sui_enclave_snapshot_seconds.*blue/, constant(60)]],
  EnclaveEnded: [[/^process_start_time_seconds.*job="enclave".*blue/, changing(100, 2100)]],
  EnclavePartEnded: [[/^sui_enclave_part_ended.*blue/, constant(1)]],
  EnclaveSecretsMissing: [[/^sui_enclave_secrets_missing.*blue/, constant(2)]],
  EnclaveClockUnconfirmed: [[/^sui_enclave_clock_confirmed.*green/, constant(0)]],
  EnclaveUncaughtErrors: [[/^sui_enclave_uncaught_errors_total.*blue/, changing(0, 1)]],
  EnclaveTaskFails: [[/^sui_enclave_task_failures.*blue/, constant(3)]],
  EnclaveEventsDropped: [[/^sui_enclave_events_dropped_total.*blue/, growing(10)]],
  RelayDown: [[/^up\{job="relay"/, constant(0)]],
  RelayUnknownEnclave: [[/^relay_unknown_cid_total/, growing(1)]],
  EnclaveUnregistered: [[/^sui_enclave_keeper_alerts\{code="UNREGISTERED"/, constant(1)]],
  EnclaveStale: [[/^sui_enclave_keeper_alerts\{code="KEY_TOO_OLD"/, constant(1)]],
  EnclaveNotSeen: [
    [/^sui_enclave_keeper_silent_enclaves/, constant(1)],
    [/^sui_enclave_keeper_alerts\{code="ENCLAVE_SILENT"/, constant(1)],
  ],
  KeeperAlert: [[/^sui_enclave_keeper_alerts\{code="REGISTERS_DIFFER"/, constant(1)]],
  KeeperSilent: [[/^sui_enclave_keeper_last_round_seconds/, constant(60)]],
  KeeperGasLow: [[/^sui_enclave_keeper_gas_left_mist/, constant(1)]],
  PosterAlert: [[/^sui_enclave_poster_alerts\{code="NO_VALUE"/, constant(1)]],
  PosterTransactionsFail: [[/^sui_enclave_poster_alert_rounds_total\{code="POST_FAILED"/, changing(0, 3)]],
  PosterEnclaveAway: [[/^sui_enclave_poster_alerts\{code="ENCLAVE_UNREACHABLE"/, constant(1)]],
  PosterSilent: [[/^sui_enclave_poster_last_round_seconds/, constant(60)]],
  PosterGasLow: [[/^sui_enclave_poster_gas_left_mist\{window="hour"/, constant(1)]],
  ProvisionerSilent: [[/^up\{job="provision"/, constant(0)]],
  ProvisionerRefused: [[/^sui_enclave_provision_lacks_secrets/, constant(1)]],
  ProverBackendDown: [[/^sui_enclave_prover_backend_ready/, constant(0)]],
  ProverNoBackend: [[/^haproxy_backend_active_servers/, constant(0)]],
  ProverNotReady: [[/^sui_enclave_prover_frontend_ready/, constant(0)]],
  ProverRefusing: [
    [/^sui_enclave_prover_frontend_requests_total\{code="OK"/, growing(30)],
    [/^sui_enclave_prover_frontend_requests_total\{code="PROVER_BUSY"/, growing(10)],
  ],
  ProverEngineRestarts: [[/^sui_enclave_prover_backend_engine_restarts_total/, growing(1)]],
};

/** Harmless states that look like faults, by description. None of them may raise an alert. */
const HARMLESS: Readonly<Record<string, readonly [series: RegExp, values: string][]>> = {
  'failures that callers cause': [
    [/^sui_enclave_prover_frontend_requests_total\{code="OK"/, growing(10)],
    [/^sui_enclave_prover_frontend_requests_total\{code="(OTHER|PROVER_TOKEN|LEFT)"/, growing(100)],
  ],
  'a task that fails twice': [[/^sui_enclave_task_failures/, constant(2)]],
  'secrets that are missing for four minutes': [[/^sui_enclave_secrets_missing.*blue/, '0+0x20 2+0x10']],
  'destructions that wait, so that gas remains for registrations': [
    [/^sui_enclave_keeper_alerts\{code="DESTRUCTION_WAITS"/, constant(1)],
  ],
  'two transactions of the poster that failed': [
    [/^sui_enclave_poster_alert_rounds_total\{code="POST_FAILED"/, changing(0, 2)],
  ],
  'a node that the poster could not use in a round': [
    [/^sui_enclave_poster_alert_rounds_total\{code="NODE_UNUSABLE"/, changing(0, 1)],
    [/^sui_enclave_poster_alerts\{code="NODE_UNUSABLE"/, '0+0x20 1 0+0x9'],
  ],
  'a few refusals': [
    [/^sui_enclave_prover_frontend_requests_total\{code="OK"/, growing(100)],
    [/^sui_enclave_prover_frontend_requests_total\{code="PROVER_BUSY"/, growing(1)],
  ],
};

describe.skipIf(!isInstalled)(NAME, () => {
  let healthy: Series;

  test('parses the metrics of each program', async () => {
    const texts = await collectScrapes();
    const all = jobs.flatMap(({ job_name: job, static_configs }) =>
      static_configs.flatMap(({ targets: [instance], labels = {} }) => [
        ...parseSeries(texts[job] ?? '', { job, instance, ...labels }),
        ...parseSeries('up 1', { job, instance, ...labels }),
      ]),
    );
    healthy = new Map(all);
    // HAProxy's answer was recorded without backends.
    for (const name of healthy.keys()) {
      if (name.startsWith('haproxy_backend_active_servers')) healthy.set(name, constant(2));
    }
    expect(jobs.map(({ job_name }) => job_name).sort()).toEqual(Object.keys(texts).sort());
    for (const job of Object.keys(texts)) {
      expect([job, [...healthy.keys()].some((name) => name.includes(`job="${job}"`))]).toEqual([job, true]);
    }
    // This command parses the format more strictly than promtool's others. It requires a timestamp in each
    // line.
    const folder = temporaryFolder();
    for (const [job, text] of Object.entries(texts)) {
      if (job === 'haproxy') continue;
      expect([job, text.endsWith('\n# EOF\n')]).toEqual([job, true]);
      const file = join(folder, `${job}.txt`);
      writeFileSync(file, text.replace(/^([^#\n].*)$/gm, '$1 1795157100'));
      const { passed, output } = run('tsdb', 'create-blocks-from', 'openmetrics', file, join(folder, job));
      expect([job, passed, passed || output]).toEqual([job, true, true]);
    }
  });

  test('accepts the configuration and the rules', () => {
    expect(run('check', 'config', join(FOLDER, 'prometheus.yml'))).toMatchObject({ passed: true });
    expect(run('check', 'rules', '--lint-fatal', join(FOLDER, 'alerts.yml'))).toMatchObject({
      passed: true,
    });
  });

  /** Returns the series that alerts read. A series that matches a pattern has its values during the fault. */
  function withFault(changes: readonly [series: RegExp, values: string][]): Series {
    const nameOf = (series: string) => series.slice(0, series.indexOf('{'));
    const series = new Map([...healthy].filter(([name]) => alertsText.includes(nameOf(name))));
    for (const [pattern, values] of changes) {
      const names = [...series.keys()].filter((name) => pattern.test(name));
      expect(names, String(pattern)).not.toEqual([]);
      for (const name of names) series.set(name, values);
    }
    return series;
  }

  test('raises no alert without a fault, nor for a harmless state', () => {
    const tests: RuleTest[] = [[], ...Object.values(HARMLESS)].map((changes) => ({
      series: withFault(changes),
      expects: { [FIRING]: {} },
    }));
    const { passed, output } = testRules(tests);
    expect(passed, output).toBe(true);
  });

  test('raises each alert for its fault, and no other', () => {
    for (const { alert, labels, annotations } of rules) {
      expect([alert, labels.severity, annotations.summary, annotations.runbook]).toEqual([
        alert,
        expect.stringMatching(/^(page|ticket)$/),
        expect.stringMatching(/\.$/),
        expect.stringMatching(/^[A-Z].{40,}\.$/),
      ]);
    }
    expect(Object.keys(FAULTS).sort()).toEqual(rules.map(({ alert }) => alert).sort());
    const tests: RuleTest[] = Object.entries(FAULTS).map(([alert, changes]) => ({
      series: withFault(changes),
      expects: { [FIRING]: { [`{alertname="${alert}"}`]: 1 } },
    }));
    const { passed, output } = testRules(tests);
    expect(passed, output).toBe(true);
  });

  test('raises an alert for a task whose run does not end', () => {
    const series = withFault([[/^sui_enclave_task_overdue.*green/, constant(1)]]);
    const expects = { [FIRING]: { '{alertname="EnclaveTaskFails"}': 1 } };
    const { passed, output } = testRules([{ series, expects }]);
    expect(passed, output).toBe(true);
  });

  /** Codes that raise no alert by themselves. An alert for ENCLAVE_SILENT reads the number of enclaves. */
  const QUIET_CODES = ['ENCLAVE_SILENT', 'DESTRUCTION_WAITS'];

  test('raises an alert of the keeper for each of its codes except the quiet ones', () => {
    const tests: RuleTest[] = KEEPER_CODES.filter((code) => !QUIET_CODES.includes(code)).map((code) => ({
      series: withFault([[new RegExp(`^sui_enclave_keeper_alerts\\{code="${code}"`), constant(1)]]),
      expects: { 'count(ALERTS{alertstate="firing"})': { '{}': 1 } },
    }));
    const { passed, output } = testRules(tests);
    expect(passed, output).toBe(true);
  });

  /**
   * Returns the series of a poster that reports this code.
   *
   * @param isLasting whether the poster still reports the code
   * @param rounds values of the counter of rounds that reported it
   */
  function withPosterCode(code: string, isLasting: boolean, rounds: string): Series {
    return withFault([
      [new RegExp(`^sui_enclave_poster_alerts\\{code="${code}"`), constant(isLasting ? 1 : 0)],
      [new RegExp(`^sui_enclave_poster_alert_rounds_total\\{code="${code}"`), rounds],
    ]);
  }

  test('raises exactly one alert for each code that the poster keeps reporting', () => {
    const tests: RuleTest[] = POSTER_CODES.map((code) => ({
      series: withPosterCode(code, true, growing(1)),
      expects: { 'count(ALERTS{alertstate="firing"})': { '{}': 1 } },
    }));
    const { passed, output } = testRules(tests);
    expect(passed, output).toBe(true);
  });

  test('raises an alert for a transaction of the poster that expired, or whose coin was used', () => {
    const tests: RuleTest[] = ['EXPIRED', 'COIN_MOVED'].map((code) => ({
      series: withPosterCode(code, false, changing(0, 1)),
      expects: { [FIRING]: { '{alertname="PosterTransactionsFail"}': 1 } },
    }));
    const { passed, output } = testRules(tests);
    expect(passed, output).toBe(true);
  });

  test('raises an alert for a failed transaction if the poster ends no further round', () => {
    const series = withPosterCode('POST_FAILED', true, changing(0, 1));
    const expects = { [FIRING]: { '{alertname="PosterTransactionsFail"}': 1 } };
    const { passed, output } = testRules([{ series, expects }]);
    expect(passed, output).toBe(true);
  });

  test('finds a series for every expression of the board', () => {
    const expressions = Object.values(BOARD).flatMap((panels) =>
      panels.flatMap(({ expressions }) => Object.values(expressions)),
    );
    const expects = Object.fromEntries(
      expressions.map((expression) => [`count(${expression}) > bool 0`, { '{}': 1 }]),
    );
    const { passed, output } = testRules([{ series: healthy, expects }]);
    expect(passed, output).toBe(true);
    expect(testRules([{ series: healthy, expects: { 'count(missing) > bool 0': { '{}': 1 } } }]).passed).toBe(
      false,
    );
  });
});
