/** Finds the ports of programs that benchmarks and tests start. */
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const START_MS = 15_000;

/** Waits until one of the ports is open. @returns the port, or the reason why none is open */
export async function waitForPort(child: ChildProcess, ports: readonly number[]): Promise<number | string> {
  for (const end = performance.now() + START_MS; performance.now() < end; await sleep(50)) {
    for (const port of ports) if (await isOpen(port)) return port;
    if (child.exitCode !== null || child.signalCode !== null) return 'it ended before it listened';
  }
  return `it did not listen within ${START_MS / 1000} s`;
}

export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}

// Each process begins at a random port, so that two processes are unlikely to choose the same.
let lastPort = randomInt(10_000, 20_000);

/**
 * Returns a port on which no program listens. It is below the ports that the kernel assigns by itself, since
 * the kernel could assign one of those to another program before this port is used.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    lastPort = lastPort === 19_999 ? 10_000 : lastPort + 1;
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(lastPort, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    const port = lastPort;
    await once(server.close(), 'close');
    return port;
  }
}
