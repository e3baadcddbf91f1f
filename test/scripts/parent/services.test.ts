/** Programs in the background, started and stopped in this process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ensureRunning, stopServices } from '../../../scripts/parent/services.ts';

const kill = process.kill.bind(process);

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'sui-enclave-services-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A service that runs; what is still there of it ends with the test. @returns its process number */
async function start(dir: string): Promise<number> {
  expect(await ensureRunning(dir, { name: 'idle', command: ['sleep', '600'] })).toBe('started');
  const { pid } = JSON.parse(readFileSync(join(dir, 'idle.json'), 'utf8'));
  onTestFinished(() => {
    try {
      kill(-pid, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  });
  return pid;
}

const failure = (code: string) => Object.assign(new Error(code), { code });

function stubKill(implementation: typeof process.kill): void {
  const spy = vi.spyOn(process, 'kill').mockImplementation(implementation);
  onTestFinished(() => spy.mockRestore());
}

test('a service runs until it is stopped', async () => {
  const dir = folder();
  const pid = await start(dir);
  expect(await ensureRunning(dir, { name: 'idle', command: ['sleep', '600'] })).toBe('running');
  expect(() => kill(pid, 0)).not.toThrow();
  expect(await stopServices(dir)).toEqual(['idle']);
  expect(readdirSync(dir)).toEqual(['idle.log']);
  expect(await stopServices(dir)).toEqual([]);
});

test('a service that ends just before it is told to has been stopped', async () => {
  const dir = folder();
  await start(dir);
  stubKill((pid) => {
    kill(pid, 'SIGKILL');
    throw failure('ESRCH');
  });
  expect(await stopServices(dir)).toEqual(['idle']);
  expect(readdirSync(dir)).toEqual(['idle.log']);
});

test('a service that may not be stopped is not forgotten', async () => {
  const dir = folder();
  await start(dir);
  stubKill(() => {
    throw failure('EPERM');
  });
  await expect(stopServices(dir)).rejects.toMatchObject({ code: 'EPERM' });
  expect(readdirSync(dir)).toContain('idle.json');
});

test('a process that has the number of a service, but not its start, is let alone', async () => {
  const dir = folder();
  const other = spawn('sleep', ['600'], { detached: true });
  onTestFinished(() => void other.kill('SIGKILL'));
  await once(other, 'spawn');
  const record = { pid: other.pid, startedAt: '1', command: ['sleep', '600'] };
  writeFileSync(join(dir, 'idle.json'), JSON.stringify(record));
  expect(await stopServices(dir)).toEqual([]);
  expect(other.exitCode ?? other.signalCode).toBeNull();
});
