/**
 * What a caller loses by the relay in front of an enclave's port: a bare server directly and through the relay, on
 * connections that are kept and on new ones. TCP on loopback stands in for vsock, so this is the relay's own cost and a
 * second TCP connection's, not that of a vsock. socat, which the relay replaces, is measured beside it where it is
 * installed.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quantity } from '../../../src/library/errors.ts';
import { type Amount, type Load, PONG } from './load.ts';
import { compareRates, costOf, type Server, startServer, stop, takeTurns } from './servers.ts';
import type { Comparison } from './table.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const RELAY = 'build/bench/relay';
/** With the CID as the last byte, the address that stands in for it: the bare server listens on the enclave's. */
const NETWORK = '127.0.0';
const ENCLAVE = 4;
const KEPT = { connections: 32, seconds: 2 };
const NEW = { connections: 16, seconds: 2 };
const TURNS = 5;

/** @returns rows for the relay, and for socat if it is installed */
export async function benchRelay(load: Load): Promise<Comparison[]> {
  execFileSync('make', ['--quiet', RELAY], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  const direct = await startServer('./echo.ts', { HOST: `${NETWORK}.${ENCLAVE}` });
  const port = Number(new URL(direct.origin).port);
  const ways = [await startRelay(direct, port)];
  if (spawnSync('socat', ['-V']).error === undefined) ways.push(await startSocat(direct, port));
  try {
    const rows: Comparison[] = [];
    for (const { name, server, targets } of ways) {
      const cost = (through: Server) => () => costOf(load, { ...direct, origin: through.origin }, PONG, KEPT);
      const kept = await takeTurns(TURNS, cost(direct), cost(server));
      const names = { floorName: 'directly' };
      rows.push(
        compareRates(
          { name: `GET / through ${name}, ${quantity(KEPT.connections, 'connection')}`, ...names },
          kept,
          targets?.kept,
        ),
      );
      const costOfNew = (through: Server) => () =>
        costOf(loadByNewConnections, { ...direct, origin: through.origin }, PONG, NEW);
      const fresh = await takeTurns(TURNS, costOfNew(direct), costOfNew(server));
      rows.push(
        compareRates(
          { name: `GET / through ${name}, a new connection each`, ...names },
          fresh,
          targets?.fresh,
        ),
      );
    }
    return rows;
  } finally {
    stop([direct, ...ways.map(({ server }) => server)]);
  }
}

interface Way {
  readonly name: string;
  readonly server: Server;
  readonly targets?: { readonly kept: number; readonly fresh: number };
}

async function startRelay({ child }: Server, enclavePort: number): Promise<Way> {
  const state = mkdtempSync(join(tmpdir(), 'bench-relay-'));
  const port = await freePort();
  mkdirSync(join(state, 'relay'));
  writeFileSync(join(state, 'relay/bench.conf'), `cid ${ENCLAVE}\nlisten 127.0.0.1:${port} ${enclavePort}\n`);
  const env = { ...process.env, VSOCK_NET: NETWORK };
  const relay = spawn(join(ROOT, RELAY), ['serve', join(state, 'relay'), state], { env, stdio: 'ignore' });
  relay.once('exit', () => rmSync(state, { recursive: true }));
  child.once('exit', () => relay.kill());
  return { name: 'the relay', server: await listening(relay, port), targets: { kept: 0.85, fresh: 0.7 } };
}

async function startSocat({ origin }: Server, enclavePort: number): Promise<Way> {
  const port = await freePort();
  const listen = `TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr,fork,backlog=1024,max-children=4096`;
  const to = `TCP:${new URL(origin).hostname}:${enclavePort}`;
  const socat = spawn('socat', ['-t', '2', listen, to], { stdio: 'ignore' });
  return { name: 'socat', server: await listening(socat, port) };
}

async function listening(child: ChildProcess, port: number): Promise<Server> {
  for (let tries = 0; ; tries += 1) {
    const socket = connect(port, '127.0.0.1');
    const isThere = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isThere) return { origin: `http://127.0.0.1:${port}`, child };
    if (tries === 100) throw new Error(`nothing listens on port ${port}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** One request on each connection, which the server ends. @throws Error if one is refused or fails */
export const loadByNewConnections: Load = async (origin, { path }, { connections, seconds }: Amount) => {
  const { host, hostname, port } = new URL(origin);
  const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  const times: number[] = [];
  const start = performance.now();
  const until = start + seconds * 1000;
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const since = performance.now();
      let answer = '';
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.setEncoding('latin1').on('data', (text) => {
        answer += text;
      });
      socket.once('error', reject);
      socket.once('end', () => {
        if (!answer.startsWith('HTTP/1.1 200 '))
          return reject(new Error(`refused: ${answer.split('\r\n')[0]}`));
        times.push(performance.now() - since);
        resolve();
      });
      socket.write(request);
    });
  const work = async () => {
    while (performance.now() < until) await ask();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const elapsed = (performance.now() - start) / 1000;
  const p99Ms = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;
  return { requests: times.length, perSecond: times.length / elapsed, p99Ms };
};
