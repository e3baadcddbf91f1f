/** `sui-enclave provision --watch` gives each new process its secrets, and gives them to nothing else. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { Metrics } from '../../../../src/cli/provision/metrics.ts';
import { type PollResult, watch } from '../../../../src/cli/provision/watch.ts';
import { ConfigError } from '../../../../src/library/errors.ts';
import { Host } from '../../library/client/host.ts';
import { newProvisioner, nsm, startVault, VALUES } from '../../server/provisioner.ts';

const INTERVAL_MS = 10_000;

/**
 * Watches for `ms` milliseconds of a fake clock. The enclave reports these states in turn, and repeats the
 * last one.
 */
async function watchFor(states: readonly (boolean | Error)[], provision: () => Promise<void>, ms: number) {
  vi.useFakeTimers();
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  onTestFinished(() => {
    random.mockRestore();
    vi.useRealTimers();
  });
  const stop = new AbortController();
  const lines: string[] = [];
  const pollResults: PollResult[] = [];
  const note = (pollResult: PollResult) => pollResults.push(pollResult);
  let polls = 0;
  const needsSecrets = async () => {
    const state = states[Math.min(polls, states.length - 1)] as boolean | Error;
    polls += 1;
    if (typeof state !== 'boolean') throw state;
    return state;
  };
  const log = (line: string) => lines.push(line);
  const watching = watch({ needsSecrets, provision, log, note }, INTERVAL_MS, stop.signal);
  await vi.advanceTimersByTimeAsync(ms);
  stop.abort();
  return { provisioned: await watching, lines, polls, pollResults };
}

const done = async () => {};
const endedError = new ConfigError('the enclave is gone');

describe('watch', () => {
  test('provisions each new process, and logs each state once', async () => {
    const states = [true, false, false, endedError, endedError, true, false];
    const { lines, provisioned, polls } = await watchFor(states, done, 65_000);
    expect([provisioned, polls]).toEqual([2, 7]);
    expect(lines).toEqual(['provisioned', 'CONFIG: the enclave is gone', 'provisioned']);
  });

  test('reports the result of each poll', async () => {
    const refuse = async () => {
      throw new ConfigError('no');
    };
    expect((await watchFor([true, false, endedError], done, 25_000)).pollResults).toEqual([
      'provisioned',
      'claim',
      'unreachable',
    ]);
    expect((await watchFor([true], refuse, 5_000)).pollResults).toEqual(['refused']);
  });

  test('does not report secrets as present if only /readyz claims them', async () => {
    const claim = 'unconfirmed: /readyz reports that the enclave has secrets';
    const { lines, provisioned } = await watchFor([false, false, endedError, false], done, 35_000);
    expect([provisioned, lines]).toEqual([0, [claim, 'CONFIG: the enclave is gone', claim]]);
  });

  test('polls an enclave that has ended at the same pace, until its next start', async () => {
    const { polls, lines } = await watchFor([endedError], done, 105_000);
    expect(polls).toBe(11);
    expect(lines).toEqual(['CONFIG: the enclave is gone']);
  });

  test('slows down while the enclave refuses, up to 5 minutes, and hides messages that are not its own', async () => {
    const times: number[] = [];
    const refuse = async () => {
      times.push(Date.now());
      throw new Error('hunter2');
    };
    const { lines, provisioned } = await watchFor([true], refuse, 1_300_000);
    const pauses = times.slice(1).map((time, index) => (time - (times[index] as number)) / 1000);
    expect(pauses).toEqual([20, 40, 80, 160, 300, 300, 300]);
    expect(provisioned).toBe(0);
    expect(lines).toEqual(['INTERNAL: an internal error']);
  });

  test('ends immediately, both while it waits and before it has begun', async () => {
    const stop = new AbortController();
    const idle = { needsSecrets: async () => false, provision: done, log() {} };
    const watching = watch(idle, 3_600_000, stop.signal);
    await new Promise(setImmediate);
    stop.abort();
    expect(await watching).toBe(0);
    expect(await watch({ ...idle, needsSecrets: () => expect.fail() }, 1, stop.signal)).toBe(0);
  });
});

test('provision --watch provisions each start of the enclave, and ends on SIGTERM', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'watch-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const me = newProvisioner();
  const key = me.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const files = { secrets: JSON.stringify(VALUES), key, pcrs: nsm.pcrsFile(), root: nsm.rootPem() };
  const options = Object.entries(files).flatMap(([name, content]) => {
    writeFileSync(join(dir, name), content, { mode: 0o600 });
    return [`--${name}`, join(dir, name)];
  });
  const first = await startVault({ provisioners: [me.hex] });
  const host = await Host.start(first.url);
  const script = fileURLToPath(new URL('../../../../src/cli/provision/provision.ts', import.meta.url));
  const child = spawn(process.execPath, [script, host.url, ...options, '--watch', '--interval', '1']);
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const printed = Promise.all([text(child.stdout), text(child.stderr)]);
  const isReady = async (url: string) => (await fetch(`${url}/readyz`)).status === 200;
  await expect.poll(() => isReady(first.url)).toBe(true);
  const second = await startVault({ provisioners: [me.hex] });
  host.target = second.url;
  await expect.poll(() => isReady(second.url)).toBe(true);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  const [stdout, stderr] = await printed;
  expect(stdout.replace(/^Trusts .*\n/, '')).toBe('provisioned\nprovisioned\n');
  expect(stderr).toBe('');
  expect(host.saw(VALUES.VAULT_KEY)).toBe(false);
});

test('the metrics say when an enclave was last polled, and whether it lacks its secrets', async () => {
  const metrics = new Metrics();
  const { url, close } = await metrics.serve(await findFreePort());
  onTestFinished(close);
  const text = async () => await (await fetch(url)).text();
  metrics.note('refused', 1000);
  metrics.note('unreachable', 2500);
  const lines = (await text()).split('\n');
  expect(lines).toContain('sui_enclave_provision_polls_total{found="refused"} 1');
  expect(lines).toContain('sui_enclave_provision_last_poll_seconds 2.5');
  expect(lines).toContain('sui_enclave_provision_lacks_secrets 1');
  metrics.note('provisioned', 4000);
  expect(await text()).toContain('sui_enclave_provision_lacks_secrets 0\n');
});
