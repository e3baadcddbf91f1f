/** Tests a poster's metrics, and the table of its alerts. */
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { ALERTS } from '../../../../src/cli/poster/alerts.ts';
import { Metrics } from '../../../../src/cli/poster/metrics.ts';
import type { Done, Report } from '../../../../src/cli/poster/round.ts';

const gas = {
  spent: (code?: string) => (code === 'GAS_AN_HOUR' ? 1n : 7n),
  left: (code?: string) => (code === 'GAS_AN_HOUR' ? 9n : 93n),
};

const done = (outcome: Done['result'], timestampMs: bigint): Done => ({
  result: outcome,
  digest: 'd',
  url: 'http://one.example',
  timestampMs,
});

test('the metrics count rounds and transactions, and have the times of the last round and of the newest value', async () => {
  const metrics = new Metrics(gas);
  const report: Report = {
    done: [done('posted', 1500n), done('failed', 9000n), done('sent', 9000n)],
    alerts: [{ code: 'SEND_FAILED', subject: 'd', message: 'why' }],
    values: 2,
    inFlight: 1,
    hasFailed: false,
  };
  metrics.note(report, 2500);
  // A round counts once for each code, however many subjects the code has.
  const failed = (subject: string) => ({ code: 'POST_FAILED', subject, message: 'why' }) as const;
  metrics.note({ ...report, done: [], alerts: [failed('d'), failed('e')] }, 3000);
  metrics.note({ ...report, done: [], hasFailed: true }, 3500);
  metrics.note(undefined, 9000);
  const values = Object.fromEntries(
    (await metrics.text())
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace('sui_enclave_poster_', '').split(' ')),
  );
  expect(values).toEqual({
    rounds_total: '4',
    failed_rounds_total: '2',
    posted_total: '1',
    failed_total: '1',
    'gas_mist{window="hour"}': '1',
    'gas_mist{window="day"}': '7',
    'gas_left_mist{window="hour"}': '9',
    'gas_left_mist{window="day"}': '93',
    values: '2',
    in_flight: '1',
    last_value_seconds: '1.5',
    last_round_seconds: '3.5',
    ...Object.fromEntries(Object.keys(ALERTS).map((code) => [`alerts{code="${code}"}`, '0'])),
    'alerts{code="SEND_FAILED"}': '1',
    ...Object.fromEntries(Object.keys(ALERTS).map((code) => [`alert_rounds_total{code="${code}"}`, '0'])),
    'alert_rounds_total{code="SEND_FAILED"}': '2',
    'alert_rounds_total{code="POST_FAILED"}': '1',
  });
});

test('the metrics are served on loopback, at one path', async () => {
  const port = await findFreePort();
  const metrics = new Metrics(gas);
  const listener = await metrics.serve(port);
  onTestFinished(() => listener.close());
  expect(await (await fetch(listener.url)).text()).toBe(await metrics.text());
  await expect(metrics.serve(port)).rejects.toMatchObject({ code: 'POSTER_FILE', exit: 2 });
});

test('the README lists every alert, with its kind and meaning', () => {
  const page = readFileSync(new URL('../../../../src/cli/poster/README.md', import.meta.url), 'utf8');
  const rows = page
    .split('## Alerts')[1]
    ?.split('## ')[0]
    ?.match(/^\| `.*$/gm);
  expect(rows).toEqual(
    Object.entries(ALERTS).map(([code, [kind, meaning]]) => `| \`${code}\` | ${kind} | ${meaning} |`),
  );
});
