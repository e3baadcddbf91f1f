/** Finds the ports of programs that this benchmark starts. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const START_MS = 15_000;

/** @returns the first port that answers, or the reason why none does */
export async function waitForPort(child: ChildProcess, ports: readonly number[]): Promise<number | string> {
  for (const until = performance.now() + START_MS; performance.now() < until; await sleep(50)) {
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

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
