/** Tests the prover's backend as a separate process, with fakes of the engine and the witness generator. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createInput, fakeGenerator, keyFile } from '../src/prover/backend/support.ts';
import { fakeWorker, LOADS, PROVES } from '../src/prover/fake_worker.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Starts the backend by its entry, as `npm run prover:backend` does. */
function run(env: Record<string, string>): { backend: ChildProcess; output: () => string } {
  const { PATH = '' } = process.env;
  const backend = spawn(process.execPath, ['src/prover/backend/main.ts'], {
    cwd: ROOT,
    env: { PATH, ...env },
  });
  onTestFinished(() => void backend.kill('SIGKILL'));
  let output = '';
  for (const stream of [backend.stdout, backend.stderr]) stream?.on('data', (chunk) => (output += chunk));
  return { backend, output: () => output };
}

async function start() {
  const worker = fakeWorker(`fs.writeFileSync(folder + '/pid', String(process.pid)); ${LOADS} ${PROVES}`);
  const { backend, output } = run({
    ZKEY: keyFile(),
    WITNESS_BINARIES: fakeGenerator(),
    PROVER_ENGINE: worker,
    ALLOW_INSECURE_DEV_KEY: '1',
    PORT: '0',
  });
  await expect.poll(output).toContain('"msg":"listening"');
  const [, url = ''] = /"url":"([^"]+)"/.exec(output()) ?? [];
  const enginePid = Number(readFileSync(worker.replace(/worker$/, 'pid'), 'utf8'));
  const post = () =>
    fetch(`${url}/input`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(createInput(5).circuit),
    });
  return { backend, post, enginePid };
}

test('a missing setting stops the start with one line', async () => {
  const { backend, output } = run({});
  expect(await once(backend, 'close')).toEqual([1, null]);
  expect(output()).toBe('sui-enclave: ZKEY must be the path of the Groth16 proving key\n');
});

test('the backend proves until SIGTERM, and leaves no engine behind', async () => {
  const { backend, post, enginePid } = await start();
  expect((await post()).status).toBe(200);
  backend.kill('SIGTERM');
  expect(await once(backend, 'exit')).toEqual([0, null]);
  await expect.poll(() => existsSync(`/proc/${enginePid}/exe`)).toBe(false);
});

test('kill -9 also leaves no engine behind, since the standard input of the engine ends', async () => {
  const { backend, post, enginePid } = await start();
  expect((await post()).status).toBe(200);
  expect(existsSync(`/proc/${enginePid}/exe`)).toBe(true);
  backend.kill('SIGKILL');
  await once(backend, 'exit');
  await expect.poll(() => existsSync(`/proc/${enginePid}/exe`)).toBe(false);
});
