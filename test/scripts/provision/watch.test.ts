/** `npm run provision -- --watch`: a new process gets its secrets, and nothing else does. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { watch } from '../../../scripts/provision/watch.ts';
import { ConfigError } from '../../../src/errors.ts';
import { Host } from '../../src/client/host.ts';
import { newProvisioner, nsm, startVault, VALUES } from '../../src/provisioner.ts';
import { sleep } from '../../src/support.ts';

const INTERVAL_MS = 5;

/** Watches until `end`, with what the enclave says and does in turn; the last is repeated. */
async function watchFor(
  states: readonly (boolean | Error)[],
  provision: () => Promise<void>,
  ms: number,
): Promise<{ lines: string[]; asked: number; provisioned: number }> {
  const stop = new AbortController();
  const lines: string[] = [];
  let asked = 0;
  const watching = watch(
    {
      needsSecrets: async () => {
        const state = states[Math.min(asked, states.length - 1)] as boolean | Error;
        asked += 1;
        if (typeof state !== 'boolean') throw state;
        return state;
      },
      provision,
      log: (line) => lines.push(line),
    },
    INTERVAL_MS,
    stop.signal,
  );
  await sleep(ms);
  stop.abort();
  return { provisioned: await watching, lines, asked };
}

const done = async () => {};
const gone = new ConfigError('the enclave is gone');

describe('watch', () => {
  test('provisions each new process, and says each state once', async () => {
    const { lines, provisioned } = await watchFor([true, false, false, gone, gone, true, false], done, 150);
    expect(provisioned).toBe(2);
    expect(lines).toEqual([
      'provisioned',
      'the enclave has its secrets',
      'CONFIG: the enclave is gone',
      'provisioned',
      'the enclave has its secrets',
    ]);
  });

  test('asks an enclave that is gone at the same pace', async () => {
    const { asked, lines } = await watchFor([gone], done, 150);
    expect(asked).toBeGreaterThan(5);
    expect(lines).toEqual(['CONFIG: the enclave is gone']);
  });

  test('slows down while the enclave refuses, and hides what is not its own', async () => {
    let tried = 0;
    const { lines, provisioned } = await watchFor(
      [true],
      async () => {
        tried += 1;
        throw new Error('hunter2');
      },
      250,
    );
    // 10, 20, 40, 80 ms between them.
    expect(tried).toBeGreaterThan(2);
    expect(tried).toBeLessThan(8);
    expect(provisioned).toBe(0);
    expect(lines).toEqual(['INTERNAL: an internal error']);
  });

  test('ends at once', async () => {
    const stop = new AbortController();
    const watching = watch(
      { needsSecrets: async () => false, provision: done, log() {} },
      3_600_000,
      stop.signal,
    );
    await sleep(5);
    stop.abort();
    expect(await watching).toBe(0);
    expect(await watch({ needsSecrets: done as never, provision: done, log() {} }, 1, stop.signal)).toBe(0);
  });
});

test('the command provisions one start after the other, and ends at SIGTERM', async () => {
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
  const script = fileURLToPath(new URL('../../../scripts/provision/provision.ts', import.meta.url));
  const child = spawn(process.execPath, [script, host.url, ...options, '--watch', '--interval', '1']);
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const printed = Promise.all([text(child.stdout), text(child.stderr)]);
  const isReady = async (url: string) => (await fetch(`${url}/readyz`)).status === 200;
  await expect.poll(() => isReady(first.url), { timeout: 10_000 }).toBe(true);
  const second = await startVault({ provisioners: [me.hex] });
  host.target = second.url;
  await expect.poll(() => isReady(second.url), { timeout: 10_000 }).toBe(true);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  const [stdout, stderr] = await printed;
  expect(stdout).toBe('provisioned\nthe enclave has its secrets\nprovisioned\n');
  expect(stderr).toBe('');
  expect(host.saw(VALUES.VAULT_KEY)).toBe(false);
});
