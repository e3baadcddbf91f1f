/** A keeper that runs in a loop: its pauses, its log and its metrics. */
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { ALERTS, type Alert, formatLine } from '../../../../src/cli/keeper/alerts.ts';
import { Metrics } from '../../../../src/cli/keeper/metrics.ts';
import { formatLines, type Report } from '../../../../src/cli/keeper/round.ts';
import { repeat } from '../../../../src/cli/rounds/loop.ts';

const quietReport: Report = { done: [], alerts: [], accepted: 2, silent: 1, hasFailed: false };
const unreachableAlert: Alert = {
  code: 'ENCLAVE_UNREACHABLE',
  subject: 'http://one.example',
  message: 'CLIENT_UNREACHABLE: why',
};
const unreadableReport: Report = {
  ...quietReport,
  alerts: [{ code: 'CONFIG_UNREADABLE', subject: '0xc', message: 'SUI_NODE_UNREACHABLE: gone' }],
  hasFailed: true,
};

/** Runs rounds with these outcomes, one after the other, and stops the keeper after the last round. */
async function run(outcomes: readonly (Report | Error)[]) {
  const stop = new AbortController();
  const lines: string[] = [];
  const pauses: number[] = [];
  const notedReports: (Report | undefined)[] = [];
  const remainingOutcomes = [...outcomes];
  await repeat(
    {
      intervalMs: 1000,
      maxPauseMs: 5000,
      random: () => 0.5,
      round: async () => {
        const outcome = remainingOutcomes.shift();
        if (outcome === undefined || outcome instanceof Error) throw outcome;
        return outcome;
      },
      note: (report) => void notedReports.push(report),
      formatDone: formatLines,
      formatAlert: formatLine,
      log: (line) => void lines.push(line),
      pause: async (ms) => {
        pauses.push(ms);
        if (remainingOutcomes.length === 0) stop.abort();
      },
    },
    stop.signal,
  );
  return { lines, pauses, notedReports };
}

test('a keeper waits longer after each failure, expected or not, and hides the messages of unexpected errors', async () => {
  const fault = new Error('hunter2');
  const { pauses, lines, notedReports } = await run([
    quietReport,
    unreadableReport,
    fault,
    unreadableReport,
    unreadableReport,
    quietReport,
  ]);
  expect(pauses).toEqual([1000, 2000, 4000, 5000, 5000, 1000]);
  expect(notedReports).toEqual([
    quietReport,
    unreadableReport,
    undefined,
    unreadableReport,
    unreadableReport,
    quietReport,
  ]);
  expect(lines).toEqual([
    'alert CONFIG_UNREADABLE 0xc: SUI_NODE_UNREACHABLE: gone',
    'alert INTERNAL: an internal error',
    'over: CONFIG_UNREADABLE 0xc',
  ]);
});

test('a keeper logs each alert when it begins and when it is over, and each action', async () => {
  const alarmed = { ...quietReport, alerts: [unreachableAlert] };
  const silent: Alert = { code: 'ENCLAVE_SILENT', subject: '0x5', message: 'nowhere' };
  const done: Report['done'] = [
    { kind: 'register', subject: 'http://one.example', result: 'done' },
    { kind: 'register', subject: 'http://two.example', result: 'theirs' },
    { kind: 'destroy', subject: '0x1', result: 'done' },
  ];
  const { lines } = await run([
    alarmed,
    { ...alarmed, alerts: [unreachableAlert, silent] },
    { ...quietReport, done },
    alarmed,
  ]);
  expect(lines).toEqual([
    'alert ENCLAVE_UNREACHABLE http://one.example: CLIENT_UNREACHABLE: why',
    'warning ENCLAVE_SILENT 0x5: nowhere',
    'registered http://one.example',
    'registered http://two.example, by another keeper',
    'destroyed 0x1',
    'over: ENCLAVE_UNREACHABLE http://one.example',
    'over: ENCLAVE_SILENT 0x5',
    'alert ENCLAVE_UNREACHABLE http://one.example: CLIENT_UNREACHABLE: why',
  ]);
});

describe('metrics', () => {
  const parseValues = (text: string) =>
    Object.fromEntries(
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => line.replace('sui_enclave_keeper_', '').split(' ')),
    );

  const gas = { spent: () => 7n, left: () => 93n };

  test('count the rounds and actions of this keeper, and have the time of the last round', async () => {
    const metrics = new Metrics(gas);
    const done: Report['done'] = [
      { kind: 'register', subject: 'a', result: 'done' },
      { kind: 'register', subject: 'b', result: 'theirs' },
      { kind: 'destroy', subject: 'c', result: 'done' },
    ];
    metrics.note({ ...quietReport, done }, 1000);
    metrics.note({ ...quietReport, done, alerts: [unreachableAlert, unreachableAlert] }, 2500);
    metrics.note({ ...unreadableReport, alerts: [unreachableAlert, unreachableAlert] }, 2500);
    metrics.note(undefined, 9000);
    expect(parseValues(await metrics.text())).toEqual({
      rounds_total: '4',
      failed_rounds_total: '2',
      registered_total: '2',
      destroyed_total: '2',
      gas_mist: '7',
      gas_left_mist: '93',
      accepted_enclaves: '2',
      silent_enclaves: '1',
      last_round_seconds: '2.5',
      ...Object.fromEntries(Object.keys(ALERTS).map((code) => [`alerts{code="${code}"}`, '0'])),
      'alerts{code="ENCLAVE_UNREACHABLE"}': '2',
    });
    expect((await metrics.text()).match(/^# TYPE \S+ (counter|gauge)$/gm)).toHaveLength(10);
  });

  test('are served on loopback, at one path', async () => {
    const port = await findFreePort();
    const metrics = new Metrics(gas);
    const listener = await metrics.serve(port);
    onTestFinished(() => listener.close());
    expect(listener.url).toBe(`http://127.0.0.1:${port}/metrics`);
    expect(await (await fetch(listener.url)).text()).toBe(await metrics.text());
    await expect(metrics.serve(port)).rejects.toMatchObject({ code: 'KEEPER_FILE', exit: 2 });
  });
});

test('the README lists every alert, with its kind and meaning', () => {
  const page = readFileSync(new URL('../../../../src/cli/keeper/README.md', import.meta.url), 'utf8');
  const rows = page
    .split('## Alerts')[1]
    ?.split('## ')[0]
    ?.match(/^\| `.*$/gm);
  expect(rows).toEqual(
    Object.entries(ALERTS).map(([code, [kind, meaning]]) => `| \`${code}\` | ${kind} | ${meaning} |`),
  );
});
