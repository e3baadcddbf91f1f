/**
 * Runs one part of the enclave's init alone: a role of `roles.cc`, which is compiled for this machine with
 * sanitizers.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/**
 * Path of the program. `test/natives.ts` builds it before the tests, with shorter waits than the enclave's.
 */
export const INIT = fileURLToPath(new URL('../../build/test/init', import.meta.url));

/** Whether the roles can run: init is a Linux program. */
export const canRun = process.platform === 'linux';

export interface Role {
  readonly child: ChildProcess;
  output(): string;
  /** Exit code, once the role has ended. */
  readonly ended: Promise<number | null>;
}

/**
 * Runs a role until the test ends.
 *
 * @param redirect redirections of its descriptors in the shell, such as `3>fifo`
 */
export function startRole(args: readonly string[], redirect = ''): Role {
  const child = spawn('sh', ['-c', `exec "$0" "$@" ${redirect}`, INIT, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return { child, output: () => output, ended: new Promise((resolve) => child.on('close', resolve)) };
}

export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'init-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Starts a server on loopback until the test ends, and returns its port. Connections may be half-closed. */
export function serve(handle: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    handle(socket);
  });
  onTestFinished(() => {
    server.close();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as { port: number }).port));
  });
}

/** Connects as soon as a program listens. */
export async function dial(port: number): Promise<Socket> {
  for (let tries = 0; ; tries += 1) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const connected = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    if (connected) {
      socket.on('error', () => {});
      return socket;
    }
    if (tries === 200) throw new Error(`no process listens on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export async function readAll(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket.setEncoding('latin1')) text += chunk;
  return text;
}
