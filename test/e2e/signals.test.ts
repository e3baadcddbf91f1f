/** A signal to npm or make ends the server that it started. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Options with which make neither installs nor builds anything. */
const MAKE = ['-o', 'install', '-o', 'addon'];

test.each([
  ['npm start', 'npm', ['start'], { APP: 'weather', API_KEY: 'hunter2' }, /"url":"([^"]+)"/],
  ['npm run dev', 'npm', ['run', 'dev'], {}, /curl -s (\S+) /],
  [
    'npm run prover:frontend',
    'npm',
    ['run', 'prover:frontend', '--', '0'],
    { PROVER_URI: 'http://127.0.0.1:9/input' },
    /"url":"([^"]+)"/,
  ],
  ['make dev', 'make', [...MAKE, 'dev'], {}, /curl -s (\S+) /],
  [
    'make dev-sui',
    'make',
    [...MAKE, 'dev-sui'],
    { FAUCET_PORT: '0', OUT: mkdtempSync(join(tmpdir(), 'dev-sui-')) },
    /\n(\S+) {2}a MODEL of a Sui node/,
  ],
  ['make dev-wallet', 'make', [...MAKE, 'dev-wallet'], {}, /\n(\S+) {2}the wallet's page/],
])('SIGTERM to %s ends the server', { timeout: 40_000 }, async (_, program, args, env, url) => {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    // The process gets a group of its own, so that no part of it outlives the test.
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // The group has ended.
    }
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  // The stream closes when every process has closed its end of the pipe, not only the one that got the
  // signal.
  const closed = once(child, 'close');
  await expect.poll(() => output).toMatch(url);
  const server = url.exec(output)?.[1] ?? '';
  expect((await fetch(server)).status).toBeLessThan(500);

  child.kill('SIGTERM');
  const timeLimit = new Promise((resolve) => setTimeout(resolve, 10_000, 'still there after 10 s').unref());
  expect(await Promise.race([closed, timeLimit])).not.toBe('still there after 10 s');
  await expect(fetch(server)).rejects.toThrow('fetch failed');
});
