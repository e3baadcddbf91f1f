/**
 * Within this time a further signal is the same wish: Ctrl-C in a terminal, or a service manager that signals a
 * whole group, reaches a process twice, once directly and once passed on by npm.
 */
const SAME_WISH_MS = 500;

/**
 * Calls `end` at the first SIGTERM or SIGINT, and then ends the process with 0. A later signal ends it at once
 * with 1: whoever asks twice doesn't want to wait.
 */
export function endOnSignal(end: (signal: NodeJS.Signals) => Promise<void>): void {
  let asked: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, async () => {
      const now = performance.now();
      if (asked !== undefined) {
        if (now - asked > SAME_WISH_MS) process.exit(1);
        return;
      }
      asked = now;
      await end(signal).finally(() => process.exit(0));
    });
  }
}
