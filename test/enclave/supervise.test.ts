import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../scripts/check/bench/ports.ts';
import { canRun, dial, readAll, serve, startRole, temporaryFolder } from './init.ts';

const TIMEOUT = { timeout: 10_000 };

/** Starts a bridge that is supervised as long as the pipe is open. */
async function startSupervised(listen: number) {
  const dir = temporaryFolder();
  const [pipe, lastEnd] = [join(dir, 'pipe'), join(dir, 'last_end')];
  execFileSync('mkfifo', [pipe]);
  const target = await serve((socket) => void socket.end('from the target'));
  const role = startRole(
    ['supervise', lastEnd, `tcp:127.0.0.1:${listen}`, `tcp:127.0.0.1:${target}`],
    `3<${pipe}`,
  );
  const holder = spawn('sh', ['-c', `cat >${pipe}`], { stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => {
    holder.kill('SIGKILL');
    for (const pid of readChildren(role.child.pid)) process.kill(pid, 'SIGKILL');
  });
  return { role, holder, lastEnd };
}

async function start() {
  const port = await findFreePort();
  const ask = async () => readAll(await dial(port));
  const supervised = await startSupervised(port);
  expect(await ask()).toBe('from the target');
  // The bridge may answer before the server has started.
  await expect.poll(() => readChildren(supervised.role.child.pid).length, TIMEOUT).toBe(2);
  return { ...supervised, ask };
}

/** Returns the ids of the child processes in start order. A restarted bridge is the last one. */
function readChildren(pid: number | undefined): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split(' ').filter(Boolean).map(Number) : [];
}

describe.runIf(canRun)('a process that init supervises', () => {
  test('is restarted each time it is killed, and the reason is recorded', async () => {
    const { role, lastEnd, ask } = await start();
    expect(existsSync(lastEnd)).toBe(false);
    const [first, server] = readChildren(role.child.pid);
    process.kill(first as number, 'SIGKILL');
    await expect.poll(() => readChildren(role.child.pid), TIMEOUT).toEqual([server, expect.any(Number)]);
    expect(await ask()).toBe('from the target');
    expect(readFileSync(lastEnd, 'utf8')).toBe('the bridge was ended by signal 9\n');

    const second = readChildren(role.child.pid)[1] as number;
    process.kill(second, 'SIGTERM');
    await expect.poll(() => readChildren(role.child.pid)[1], TIMEOUT).not.toBe(second);
    expect(await ask()).toBe('from the target');
    expect(readFileSync(lastEnd, 'utf8')).toBe('the bridge was ended by signal 15\n');
    expect(role.output()).toBe(
      [9, 15]
        .map((signal) => `init: the bridge was ended by signal ${signal}, and is started again\n`)
        .join(''),
    );
  });

  test('is restarted as long as it fails', async () => {
    const { role, lastEnd } = await startSupervised(await serve((socket) => void socket.destroy()));
    const restartLine = 'the bridge ended with status 1, and is started again';
    await expect.poll(() => role.output().split(restartLine).length, TIMEOUT).toBeGreaterThan(3);
    expect(readFileSync(lastEnd, 'utf8')).toBe('the bridge ended with status 1\n');
  });

  test.each([
    ['ends', () => {}, 'the server ended with status 0\n'],
    ['is killed', (pid: number) => process.kill(pid, 'SIGKILL'), 'the server was ended by signal 9\n'],
  ])('ends with the server when the server %s', async (_case, kill, reason) => {
    const { role, holder } = await start();
    kill(readChildren(role.child.pid)[1] as number);
    holder.stdin.end();
    expect(await role.ended).toBe(0);
    expect(role.output()).toBe(reason);
  });
});
