import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { type Answer, Child, Driver } from './driver.ts';

let directory: string | undefined;
let child: Child | undefined;

afterAll(() => {
  child?.process.kill('SIGKILL');
  if (directory !== undefined) rmSync(directory, { recursive: true });
});

/**
 * Starts a driver for the test, and a process that uses it, with a device that was never opened. The tests of
 * a file share the process until one of them ends it.
 */
export function start(answer: Answer = () => new Uint8Array(1)): { driver: Driver; child: Child } {
  directory ??= mkdtempSync(join(tmpdir(), 'nsm-'));
  const driver = new Driver(answer, directory);
  onTestFinished(() => driver.stop());
  if (child?.isRunning) {
    child.renewDevice();
  } else {
    child = new Child(driver.socketPath);
  }
  return { driver, child };
}
