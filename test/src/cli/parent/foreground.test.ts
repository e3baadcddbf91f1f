/** Runs run_enclave --foreground as a process, which a supervisor may start, end and kill at any time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { spawnScript } from '../run.ts';
import { Parent } from './fakes.ts';

let parent: Parent;
let eif: string;

beforeEach(() => {
  parent = new Parent();
  eif = parent.makeImage();
});

const measurePcr0 = (path: string) => measureImage(readEif(readFileSync(path))).pcr0;
const startCalls = () => parent.calls('nitro-cli').filter((call) => call.includes(' run-enclave '));
const endCalls = () => parent.calls('nitro-cli').filter((call) => call.includes(' terminate-enclave '));

/** Starts the command, and waits until it reports that the enclave runs. */
async function start(image = eif): Promise<{ child: ChildProcess; output: Promise<string>; first: string }> {
  const child = parent.start('run_enclave.ts', ['--foreground', '--eif', image]);
  if (!child.stdout) throw new Error('no output');
  const output = text(child.stdout);
  const [first] = await once(child.stdout, 'data');
  return { child, output, first: String(first) };
}

async function awaitExit(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

test('the command starts an enclave, exits when the enclave ends, and prints why', async () => {
  const running = spawnScript('parent/run_enclave.ts', ['--foreground', '--eif', eif], { env: parent.env });
  const enclaves = join(parent.dir, 'enclaves');
  await expect.poll(() => existsSync(enclaves)).toBe(true);
  writeFileSync(
    join(parent.state, 'reports.jsonl'),
    '{"event":"failed","code":"CONFIG"}\n{"event":"end","reason":"the server ended"}\n',
  );
  parent.set('enclaves', '');
  const { status, stdout, stderr } = await running;
  expect([status, stdout]).toEqual([
    1,
    expect.stringMatching(/^i-1-enc1 runs as CID 16 with 512 MiB\. PCR0 /),
  ]);
  expect(stderr).toBe('ENCLAVE_ENDED: i-1-enc1 has ended: the server ended (CONFIG)\n');
  expect(endCalls()).toEqual([]);
});

test('the command terminates the enclave on SIGTERM, and succeeds', async () => {
  const { child, output } = await start();
  child.kill('SIGTERM');
  expect([await awaitExit(child), await output]).toEqual([
    0,
    expect.stringMatching(/\ni-1-enc1 was terminated\n$/),
  ]);
  expect(endCalls()).toEqual(['nitro-cli terminate-enclave --enclave-id i-1-enc1']);
});

test('the command watches the running enclave when it is started again after SIGKILL', async () => {
  parent.set('pcr0', measurePcr0(eif));
  const { child } = await start();
  child.kill('SIGKILL');
  await awaitExit(child);
  // The file is missing, as after a failed start.
  rmSync(join(parent.dir, 'state/relay/sui-enclave.conf'));
  const restarted = await start();
  expect(restarted.first).toBe('i-1-enc1 runs already as CID 16: watching it\n');
  expect([startCalls().length, endCalls()]).toEqual([1, []]);
  expect(parent.conf()).toMatch(/^cid 16\nupstream /);
  parent.set('enclaves', '');
  expect(await awaitExit(restarted.child)).toBe(1);
});

test('the command watches the running enclave after SIGKILL, even if a newer image was installed', async () => {
  const older = join(parent.dir, 'older.eif');
  const installed = join(parent.dir, 'nitro.eif');
  copyFileSync(eif, older);
  symlinkSync(older, installed);
  parent.set('pcr0', measurePcr0(older));
  const { child } = await start(installed);
  expect(startCalls()).toEqual([expect.stringContaining(` --eif-path ${older} `)]);
  child.kill('SIGKILL');
  await awaitExit(child);
  rmSync(installed);
  symlinkSync(parent.makeImage('endpoints: []\nsecrets: []\n'), installed);
  expect(measurePcr0(installed)).not.toBe(measurePcr0(older));
  const restarted = await start(installed);
  expect(restarted.first).toMatch(/runs already/);
  expect([startCalls().length, endCalls()]).toEqual([1, []]);
});

test('the command touches no enclave of this name that runs another image', async () => {
  parent.setEnclave({ Measurements: { PCR0: 'ab' } });
  const { status, stderr } = await parent.run('run_enclave.ts', ['--foreground', '--eif', eif]);
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^WRONG_STATE: an enclave named sui-enclave runs another image, whose PCR0 is ab/),
  ]);
  expect([startCalls(), endCalls()]).toEqual([[], []]);
});

test('the command waits for a start that an earlier process left behind, and does not start a second enclave', async () => {
  // The list of processes then has nitro-cli with the arguments of a start.
  mkdirSync(join(parent.dir, 'left'));
  const nitroCli = join(parent.dir, 'left/nitro-cli');
  writeFileSync(nitroCli, 'setTimeout(() => {}, 60_000)');
  const args = [nitroCli, 'run-enclave', '--enclave-name', 'sui-enclave', '--eif-path', eif];
  const starter = spawn(process.execPath, args, { stdio: 'ignore' });
  onTestFinished(() => {
    starter.kill('SIGKILL');
  });
  await once(starter, 'spawn');
  const running = start();
  const countDescribes = () => parent.calls('nitro-cli').filter((call) => call.includes('describe')).length;
  await expect.poll(countDescribes).toBeGreaterThan(2);
  expect(startCalls()).toEqual([]);
  parent.setEnclave();
  expect((await running).first).toBe('i-1-enc1 runs already as CID 16: watching it\n');
  expect(startCalls()).toEqual([]);
});

test('the command does not take a failure of nitro-cli for the end of the enclave', async () => {
  const { child, output } = await start();
  const countCalls = () => parent.calls('nitro-cli').length;
  parent.set('describe fails', '[ E07 ] no');
  const before = countCalls();
  await expect.poll(countCalls).toBeGreaterThan(before);
  parent.set('describe fails', '');
  child.kill('SIGTERM');
  expect([await awaitExit(child), await output]).toEqual([0, expect.stringMatching(/was terminated\n$/)]);
});

test.each([
  ['a unit', 'output'],
  ['a unit of an older version, which writes to the folder of the state', 'state'],
])('the command leaves the relay to systemd, if the relay is %s', async (_unit, output) => {
  const folder = join(parent.dir, 'state/relay');
  const env = { SUI_ENCLAVE_RELAY: output === 'state' ? 'unit' : join(parent.dir, output) };
  const running = parent.run('run_enclave.ts', ['--eif', eif], env);
  await expect.poll(() => existsSync(join(folder, 'changed'))).toBe(true);
  // The enclave must not start before the relay uses the configuration, since its first reports would be
  // lost.
  expect(startCalls()).toEqual([]);
  mkdirSync(join(parent.dir, output, 'relay'), { recursive: true });
  writeFileSync(join(parent.dir, output, 'relay/in_effect'), `sui-enclave\n${parent.conf()}\n`);
  expect(await running).toMatchObject({ status: 0 });
  rmSync(join(folder, 'changed'));
  expect(await parent.run('stop_enclave.ts', [], env)).toMatchObject({ status: 0 });
  expect([existsSync(join(folder, 'changed')), existsSync(join(folder, 'sui-enclave.conf'))]).toEqual([
    true,
    false,
  ]);
  expect(parent.relayPid).toBeUndefined();
});

test('the command refuses debug mode', async () => {
  const { status, stderr } = await parent.run('run_enclave.ts', ['--foreground', '--debug', '--eif', eif]);
  expect([status, stderr]).toEqual([2, expect.stringMatching(/^USAGE: give either --foreground or --debug/)]);
});
