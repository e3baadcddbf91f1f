/**
 * Starts HAProxy with the unchanged configuration of deploy/, and backends as separate processes, all on
 * loopback.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { type Dns, startDns } from './dns.ts';

export const CONFIG = fileURLToPath(new URL('../../../deploy/haproxy.cfg', import.meta.url));
/** Path of Debian's HAProxy, or of the one that HAPROXY names. */
export const HAPROXY = process.env['HAPROXY'] ?? '/usr/sbin/haproxy';
/** Path of the real backend's program. */
export const REAL_BACKEND = fileURLToPath(new URL('../../../src/prover/backend/main.ts', import.meta.url));
export const isInstalled = existsSync(HAPROXY);

export interface Program {
  readonly process: ChildProcess;
  /** Returns its output so far. */
  readonly output: () => string;
}

export function start(program: string, args: readonly string[], env: Record<string, string>): Program {
  const child = spawn(program, args, { env: { PATH: process.env['PATH'] ?? '', ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return { process: child, output: () => output };
}

export async function stop({ process: child }: Program, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}

/** Waits until a condition holds, for at most 30 s. */
export async function until(condition: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(20)) if (await holds()) return;
  throw new Error(`waited for 30 s: ${condition}`);
}

/** Returns the tag that a backend gives the proof of a body. */
export const computeTag = (body: string) => createHash('sha256').update(body).digest('hex');

/**
 * Returns the tags of the requests that a fake has begun and ended, those whose callers left before the end,
 * and the largest number of simultaneous requests.
 */
export function readWork({ output }: Program) {
  const lines = output().split('\n');
  const tags = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.split(' ')[1] as string);
  const counts = lines.flatMap((line) => /^begin \S+ (\d+)$/.exec(line)?.[1] ?? []).map(Number);
  return {
    begun: tags('begin'),
    ended: tags('end'),
    left: tags('gone'),
    maxSimultaneous: Math.max(0, ...counts),
  };
}

/** HAProxy, its DNS server, and the backends behind it. */
export class Site {
  readonly backends = new Map<string, Program>();
  #dns!: Dns;
  #proxy!: Program;
  #backendPort = 0;
  #port = 0;

  static async start(env: Record<string, string> = {}): Promise<Site> {
    const site = new Site();
    site.#dns = await startDns([]);
    site.#backendPort = await findFreePort();
    site.#port = await findFreePort();
    site.#proxy = start(HAPROXY, ['-db', '-f', CONFIG], {
      BIND: `127.0.0.1:${site.#port}`,
      BACKEND: 'backend.test',
      BACKEND_PORT: String(site.#backendPort),
      RESOLVER: site.#dns.address,
      ...env,
    });
    await until('HAProxy answers', async () => (await site.get('/backends').catch(() => null)) !== null);
    return site;
  }

  /** Starts a fake backend at an address, and adds the address to DNS before the fake has loaded its key. */
  async add(address: string, proofMs: number, loadMs = 0): Promise<Program> {
    const file = fileURLToPath(new URL('fake_backend.ts', import.meta.url));
    const fakeArgs = [address, this.#backendPort, proofMs, loadMs].map(String);
    const backend = this.#launch(address, [file, ...fakeArgs], {});
    const listens = () => backend.output().includes('listening');
    if (loadMs === 0) await until(`the backend at ${address} listens`, listens);
    return backend;
  }

  /** Starts the real backend at an address, and adds the address to DNS at once. */
  addReal(address: string, env: Record<string, string>): Program {
    const addressEnv = { HOST: address, PORT: String(this.#backendPort) };
    return this.#launch(address, [REAL_BACKEND], { ...env, ...addressEnv });
  }

  #launch(address: string, command: string[], env: Record<string, string>): Program {
    const backend = start(process.execPath, command, env);
    this.backends.set(address, backend);
    this.#dns.addresses = [...this.backends.keys()];
    return backend;
  }

  /** Waits until HAProxy has found a number of backends. */
  ready(count: number): Promise<void> {
    return until(`${count} backends are in service`, async () => {
      const response = await this.get('/backends');
      return (await response.text()) === String(count);
    });
  }

  get(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#port}${path}`);
  }

  post(body: string, signal?: AbortSignal): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return fetch(this.inputUrl, { method: 'POST', headers, body, ...(signal && { signal }) });
  }

  /** URL to which a front end sends its requests. */
  get inputUrl(): string {
    return `http://127.0.0.1:${this.#port}/input`;
  }

  /** Returns the log of HAProxy. */
  log(): string {
    return this.#proxy.output();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.backends.values(), this.#proxy].map((program) => stop(program)));
    this.#dns.close();
  }
}
