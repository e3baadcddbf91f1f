import { onTestFinished, vi } from 'vitest';

/** Makes timers of exactly `ms` milliseconds end after `changedMs` milliseconds, until the test ends. */
export function changeDeadline(ms: number, changedMs: number): void {
  const { setTimeout } = globalThis;
  const spy = vi.spyOn(globalThis, 'setTimeout');
  spy.mockImplementation(((run: () => void, delay?: number, ...args: []) =>
    setTimeout(run, delay === ms ? changedMs : delay, ...args)) as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
}
