/**
 * Runs the host's relay, which is compiled for this machine with sanitizers. In place of vsock it has TCP on
 * loopback, where the last byte of an address is the CID. The host's CID is 3.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';

/** Path of the relay, which `test/natives.ts` builds before the tests. */
export const RELAY = fileURLToPath(new URL('../../build/test/relay', import.meta.url));

export const REPORTS = 7778;
export const EVENTS = 7779;

/** A host with a relay, which ends with the test. */
export class Host {
  readonly dir = mkdtempSync(join(tmpdir(), 'relay-'));
  /** First three bytes of the host's addresses. */
  readonly network = `127.${randomInt(1, 255)}.${randomInt(0, 255)}`;
  child: ChildProcess | undefined;
  stdout = '';
  stderr = '';
  ended: Promise<number | null> = Promise.resolve(null);

  constructor() {
    mkdirSync(join(this.dir, 'relay'));
    onTestFinished(() => {
      this.child?.kill('SIGKILL');
      rmSync(this.dir, { recursive: true });
    });
  }

  get env(): Record<string, string> {
    return {
      VSOCK_NET: this.network,
      HOSTS: join(this.dir, 'hosts'),
      // A relay that exits by itself reports the memory that it leaked; one that is killed reports nothing.
      ASAN_OPTIONS: 'detect_leaks=1',
    };
  }

  /** Sets the names that the relay can look up: lines `NAME ADDRESS PORT`. */
  hosts(...lines: string[]): void {
    writeFileSync(join(this.dir, 'hosts'), lines.map((line) => `${line}\n`).join(''));
  }

  /** Writes the file of an enclave, and creates its folder. */
  conf(name: string, ...lines: string[]): void {
    writeFileSync(join(this.dir, 'relay', `${name}.conf`), lines.map((line) => `${line}\n`).join(''));
    mkdirSync(join(this.dir, name), { recursive: true });
  }

  removeConf(name: string): void {
    rmSync(join(this.dir, 'relay', `${name}.conf`));
  }

  /** Starts the relay, and waits until it serves the content of its folder. */
  async start(...args: string[]): Promise<void> {
    const child = spawn(RELAY, ['serve', join(this.dir, 'relay'), this.dir, ...args], {
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    child.stdout.setEncoding('latin1').on('data', (chunk) => {
      this.stdout += chunk;
    });
    child.stderr.setEncoding('latin1').on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.ended = new Promise((resolve) => child.on('close', resolve));
    await expect.poll(() => this.stderr + (child.exitCode ?? '')).toMatch(/serves|\d$/);
  }

  /** Makes the relay read its folder again. */
  async reload(): Promise<void> {
    const before = this.stderr.length;
    this.child?.kill('SIGHUP');
    await expect.poll(() => this.stderr.slice(before)).toMatch(/serves/);
  }

  /** Connects to a vsock port of the host, as an enclave does. */
  dial(cid: number, port: number): Promise<Socket> {
    return dialFrom(`${this.network}.3`, port, `${this.network}.${cid}`);
  }

  /** Listens on a vsock port of an enclave. */
  async listen(cid: number, port: number, handle: (socket: Socket) => void): Promise<{ stop(): void }> {
    return listenOn(`${this.network}.${cid}`, port, handle);
  }

  /** Reports as an enclave does. @returns whether the report was taken, or must be tried again */
  async report(cid: number, text: string): Promise<'taken' | 'refused'> {
    const socket = await this.dial(cid, REPORTS);
    socket.end(text);
    return (await readOutcome(socket)) === '' ? 'taken' : 'refused';
  }

  reports(name: string): string {
    return readFileSync(join(this.dir, name, 'reports.jsonl'), 'utf8');
  }
}

export async function listenOn(
  host: string,
  port: number,
  handle: (socket: Socket) => void,
): Promise<{ port: number; stop(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    handle(socket);
  });
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.resetAndDestroy();
  };
  onTestFinished(stop);
  await new Promise<void>((resolve) => server.listen(port, host, 4096, resolve));
  return { port: (server.address() as { port: number }).port, stop };
}

/**
 * Connects. For a connection that is reset immediately, `readOutcome` returns the error.
 *
 * @throws any other error of the connection
 */
export async function dialFrom(host: string, port: number, localAddress?: string): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, ...(localAddress && { localAddress }) });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve() : reject(error),
    );
  });
  socket.on('error', () => {});
  return socket;
}

/** Returns all bytes of a connection until it ends, or the code of its error. */
export function readOutcome(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((resolve) => {
    socket.once('end', () => resolve(text));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    if (socket.errored) resolve((socket.errored as NodeJS.ErrnoException).code ?? '');
  });
}
