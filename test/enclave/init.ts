/** The enclave's init, compiled for this machine with sanitizers, to run one of its roles. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = join(ROOT, 'enclave/init');
const FLAGS = [
  '-std=c++20',
  '-O1',
  '-g',
  '-Wall',
  '-Wextra',
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover',
];

/** Init is a Linux program. */
export const canRun = process.platform === 'linux';

/** Compiled once for each version of its source. */
export function initBinary(): string {
  const files = globSync('*.{cc,h}', { cwd: SOURCE }).sort();
  const hash = createHash('sha256').update(FLAGS.join(' '));
  for (const file of files) hash.update(readFileSync(join(SOURCE, file)));
  const dir = join(ROOT, 'build/test');
  const binary = join(dir, `init-${hash.digest('hex').slice(0, 16)}`);
  if (!existsSync(binary)) {
    mkdirSync(dir, { recursive: true });
    const sources = files.filter((file) => file.endsWith('.cc')).map((file) => join(SOURCE, file));
    const partial = `${binary}.${process.pid}`;
    execFileSync(process.env['CXX'] ?? 'c++', [...FLAGS, ...sources, '-o', partial]);
    renameSync(partial, binary);
  }
  return binary;
}

export interface Role {
  readonly child: ChildProcess;
  output(): string;
  /** Exit code, once it has ended. */
  readonly ended: Promise<number | null>;
}

/** Runs a role until the test ends. @param redirect what a shell does about its descriptors, such as `3>fifo` */
export function startRole(args: readonly string[], redirect = ''): Role {
  const child = spawn('sh', ['-c', `exec "$0" "$@" ${redirect}`, initBinary(), ...args], {
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

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Connects as soon as somebody listens. */
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
    if (tries === 200) throw new Error(`nobody listens on port ${port}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

export async function readAll(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket.setEncoding('latin1')) text += chunk;
  return text;
}
