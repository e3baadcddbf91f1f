/**
 * Runs `sui-enclave keep` in a separate process, with an enclave that restarts, a node that becomes
 * unreachable, metrics, and SIGTERM.
 */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { KeeperFixture } from '../../src/cli/keeper/keeper_fixture.ts';
import { Host } from '../../src/library/client/host.ts';
import { startServer } from '../../src/server/support.ts';

const SCRIPT = fileURLToPath(new URL('../../../src/cli/keeper/keep.ts', import.meta.url));

const TIMEOUT = { timeout: 10_000 };

test('registers an enclave again after its restart, resumes when the node is reachable again, and ends at SIGTERM', async () => {
  const fixture = await KeeperFixture.start();
  onTestFinished(() => fixture.close());
  const startEnclave = async () => await startServer({ nsm: fixture.chain.nsm });
  const host = await Host.start((await startEnclave()).url);
  const port = await findFreePort();
  const path = fixture.write({
    ...fixture.content([host.url]),
    interval: 1,
    max_pause: 1,
    metrics_port: port,
  });
  const key = fixture.operator.key.getSecretKey();
  const child = spawn(process.execPath, [SCRIPT, path], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SUI_PRIVATE_KEY: key },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const countRegistered = async () => (await fixture.ids()).length;
  const readMetrics = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  await expect.poll(countRegistered, TIMEOUT).toBe(1);

  const { faults } = fixture.chain.node;
  faults.set('BatchGetObjects', 'reset');
  await expect.poll(readMetrics, TIMEOUT).toContain('alerts{code="CONFIG_UNREADABLE"} 1');
  host.target = (await startEnclave()).url;
  faults.clear();
  await expect.poll(countRegistered, TIMEOUT).toBe(2);
  await expect.poll(readMetrics, TIMEOUT).toContain('registered_total 2');

  // SIGTERM arrives while the keeper waits for a node that hangs.
  faults.set('BatchGetObjects', 'hang');
  const callCount = fixture.chain.node.calls.length;
  await expect.poll(() => fixture.chain.node.calls.length, TIMEOUT).toBeGreaterThan(callCount);
  const exitCode = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await exitCode).toBe(0);
  const [stdout, stderr] = await output;
  expect(stdout.split('\n').filter((line) => !line.startsWith('Trusts'))).toEqual([
    `registered ${host.url}`,
    expect.stringMatching(/^alert CONFIG_UNREADABLE 0x[0-9a-f]{64}: SUI_NODE_UNREACHABLE: /),
    `registered ${host.url}`,
    expect.stringMatching(/^warning ENCLAVE_SILENT 0x[0-9a-f]{64}: /),
    `over: CONFIG_UNREADABLE ${fixture.configId}`,
    '',
  ]);
  expect(stderr).toBe('');
  expect(stdout).not.toContain(key);
});
