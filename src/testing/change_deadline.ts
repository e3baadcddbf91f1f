import { onTestFinished, vi } from 'vitest';

/** Makes a timer of exactly `ms` milliseconds end after `instead` milliseconds, until the test ends. */
export function changeDeadline(ms: number, instead: number): void {
  const { setTimeout } = globalThis;
  const spy = vi.spyOn(globalThis, 'setTimeout');
  spy.mockImplementation(((run: () => void, delay?: number, ...args: []) =>
    setTimeout(run, delay === ms ? instead : delay, ...args)) as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
}
