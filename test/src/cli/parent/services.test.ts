/** Programs in the background, which this process starts and stops. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ensureRunning, type Service, stopServices } from '../../../../src/cli/parent/services.ts';

const kill = process.kill.bind(process);
const IDLE: Service = { name: 'idle', command: ['sleep', '600'] };

function createFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'sui-enclave-services-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Starts a service, whose processes end with the test. @returns its process id */
async function start(dir: string): Promise<number> {
  expect(await ensureRunning(process.env, dir, [IDLE])).toEqual(['started']);
  const { pid } = JSON.parse(readFileSync(join(dir, 'idle.json'), 'utf8'));
  onTestFinished(() => {
    try {
      kill(-pid, 'SIGKILL');
    } catch {
      // The process has ended, as it should.
    }
  });
  return pid;
}

const createError = (code: string) => Object.assign(new Error(code), { code });

function stubKill(implementation: typeof process.kill): void {
  const spy = vi.spyOn(process, 'kill').mockImplementation(implementation);
  onTestFinished(() => spy.mockRestore());
}

test('a service runs until it is stopped', async () => {
  const dir = createFolder();
  const pid = await start(dir);
  expect(await ensureRunning(process.env, dir, [IDLE])).toEqual(['running']);
  expect(() => kill(pid, 0)).not.toThrow();
  expect(await stopServices(dir)).toEqual(['idle']);
  expect(readdirSync(dir)).toEqual(['idle.log']);
  expect(await stopServices(dir)).toEqual([]);
});

test('a service that ends immediately is reported, and the other services run', async () => {
  const dir = createFolder();
  const services: Service[] = [{ name: 'broken', command: ['false'] }, IDLE];
  await expect(ensureRunning(process.env, dir, services)).rejects.toMatchObject({
    code: 'PROGRAM_FAILED',
    message: `broken ended immediately: see ${join(dir, 'broken.log')}`,
  });
  expect(readdirSync(dir).sort()).toEqual(['broken.log', 'idle.json', 'idle.log']);
  expect(await stopServices(dir)).toEqual(['idle']);
});

test('a service that ends just before it gets the signal counts as stopped', async () => {
  const dir = createFolder();
  await start(dir);
  stubKill((pid) => {
    kill(pid, 'SIGKILL');
    throw createError('ESRCH');
  });
  expect(await stopServices(dir)).toEqual(['idle']);
  expect(readdirSync(dir)).toEqual(['idle.log']);
});

test("a service that can't be stopped keeps its record", async () => {
  const dir = createFolder();
  await start(dir);
  stubKill(() => {
    throw createError('EPERM');
  });
  await expect(stopServices(dir)).rejects.toMatchObject({ code: 'EPERM' });
  expect(readdirSync(dir)).toContain('idle.json');
});

test('a process with the id of a service, but another start time, is left alone', async () => {
  const dir = createFolder();
  const otherProcess = spawn('sleep', ['600'], { detached: true });
  onTestFinished(() => void otherProcess.kill('SIGKILL'));
  await once(otherProcess, 'spawn');
  const record = { pid: otherProcess.pid, startedAt: '1', command: ['sleep', '600'] };
  writeFileSync(join(dir, 'idle.json'), JSON.stringify(record));
  expect(await stopServices(dir)).toEqual([]);
  expect(otherProcess.exitCode ?? otherProcess.signalCode).toBeNull();
});
