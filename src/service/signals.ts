/**
 * Time within which a further signal counts as a repetition, in milliseconds. Ctrl-C in a terminal, or a
 * signal of a service manager to a whole process group, reaches a process twice: directly, and forwarded by
 * npm.
 */
const REPETITION_MS = 500;

/**
 * Calls `end` at the first SIGTERM or SIGINT, and then exits with 0. A later signal exits immediately with 1:
 * the user doesn't want to wait.
 */
export function endOnSignal(end: (signal: NodeJS.Signals) => Promise<void>): void {
  let signalledAt: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, async () => {
      const now = performance.now();
      if (signalledAt !== undefined) {
        if (now - signalledAt > REPETITION_MS) process.exit(1);
        return;
      }
      signalledAt = now;
      await end(signal).finally(() => process.exit(0));
    });
  }
}
