/**
 * Measures the cost of the relay in front of an enclave's port. Calls a bare server directly and through the
 * relay, on connections that stay open and on new connections. TCP on loopback stands in for vsock. So the
 * result is the cost of the relay and of a second TCP connection, not of a vsock. Where HAProxy is installed,
 * one of its threads does the same work in TCP mode.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quantity } from '../../../src/library/wording.ts';
import { type Amount, type Load, PONG } from './load.ts';
import { findFreePort, waitForPort } from './ports.ts';
import {
  compareCpu,
  compareRates,
  measureCost,
  type Server,
  startServer,
  stop,
  type Turn,
  takeTurns,
} from './servers.ts';
import type { Comparison } from './table.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const RELAY = 'build/bench/relay';
/**
 * Network of the addresses that replace CIDs. The last byte of an address is the CID. The bare server listens
 * on the address of the enclave's CID.
 */
const NETWORK = '127.0.0';
const ENCLAVE = 4;
const KEPT = { connections: 32, seconds: 2 };
const NEW = { connections: 16, seconds: 2 };
const TURNS = 5;
/** Minimum ratio of our rate to HAProxy's, and maximum ratio of our CPU time to HAProxy's. */
const MIN_RATE = 0.9;
const MAX_CPU = 1.1;

export async function benchRelay(load: Load): Promise<Comparison[]> {
  execFileSync('make', ['--quiet', RELAY], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  const direct = await startServer('./echo.ts', { HOST: `${NETWORK}.${ENCLAVE}` });
  const relay = await startRelay(direct);
  const proxy = await startHaproxy(direct);
  const takeLoadTurns = (runLoad: Load, amount: Amount, floor: Server) => {
    const cost = (server: Server) => () => measureCost(runLoad, server, PONG, amount);
    return takeTurns(TURNS, cost(floor), cost(relay));
  };
  const name = 'GET / through the relay';
  const openName = `${name}, ${quantity(KEPT.connections, 'connection')}`;
  const newName = `${name}, a new connection each`;
  try {
    const rows = [
      compareRates({ name: openName, floorName: 'directly' }, await takeLoadTurns(load, KEPT, direct)),
      compareRates(
        { name: newName, floorName: 'directly' },
        await takeLoadTurns(loadByNewConnections, NEW, direct),
      ),
    ];
    if (!proxy) return rows;
    return [
      ...rows,
      ...compareWithHaproxy(openName, await takeLoadTurns(load, KEPT, proxy)),
      ...compareWithHaproxy(newName, await takeLoadTurns(loadByNewConnections, NEW, proxy)),
    ];
  } finally {
    stop([direct, relay]);
  }
}

function compareWithHaproxy(name: string, turns: readonly Turn[]): Comparison[] {
  const names = { name: `${name}, compared with HAProxy`, floorName: 'HAProxy' };
  const rates = compareRates(names, turns, MIN_RATE);
  return [rates, compareCpu(rates, turns, MAX_CPU)];
}

async function startRelay({ child, origin }: Server): Promise<Server> {
  const state = mkdtempSync(join(tmpdir(), 'bench-relay-'));
  const port = await findFreePort();
  mkdirSync(join(state, 'relay'));
  const enclavePort = new URL(origin).port;
  writeFileSync(join(state, 'relay/bench.conf'), `cid ${ENCLAVE}\nlisten 127.0.0.1:${port} ${enclavePort}\n`);
  const env = { ...process.env, VSOCK_NET: NETWORK };
  const relay = spawn(join(ROOT, RELAY), ['serve', join(state, 'relay'), state], { env, stdio: 'ignore' });
  relay.once('exit', () => rmSync(state, { recursive: true }));
  child.once('exit', () => relay.kill());
  return await waitUntilOpen('the relay', relay, port);
}

/** Starts HAProxy in front of the server. @returns undefined if HAProxy is not installed */
async function startHaproxy({ child, origin }: Server): Promise<Server | undefined> {
  if (spawnSync('haproxy', ['-v'], { stdio: 'ignore' }).error) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'bench-haproxy-'));
  const config = join(folder, 'haproxy.cfg');
  const port = await findFreePort();
  writeFileSync(config, formatHaproxyConfig(port, new URL(origin).host));
  const proxy = spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' });
  proxy.once('exit', () => rmSync(folder, { recursive: true }));
  child.once('exit', () => proxy.kill());
  return await waitUntilOpen('HAProxy', proxy, port);
}

function formatHaproxyConfig(port: number, server: string): string {
  return `global
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen enclave
  bind 127.0.0.1:${port}
  server enclave ${server}
`;
}

async function waitUntilOpen(name: string, child: ChildProcess, port: number): Promise<Server> {
  const started = await waitForPort(child, [port]);
  if (typeof started === 'string') throw new Error(`${name}: ${started}`);
  return { origin: `http://127.0.0.1:${port}`, child };
}

/**
 * Sends one request on each connection, which the server then closes. @throws Error if a request is refused
 * or fails
 */
export const loadByNewConnections: Load = async (origin, { path }, { connections, seconds }: Amount) => {
  const { host, hostname, port } = new URL(origin);
  const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  const times: number[] = [];
  const start = performance.now();
  const end = start + seconds * 1000;
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const sentAt = performance.now();
      let answer = '';
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.setEncoding('latin1').on('data', (text) => {
        answer += text;
      });
      socket.once('error', reject);
      socket.once('end', () => {
        if (!answer.startsWith('HTTP/1.1 200 '))
          return reject(new Error(`refused: ${answer.split('\r\n')[0]}`));
        times.push(performance.now() - sentAt);
        resolve();
      });
      socket.write(request);
    });
  const work = async () => {
    while (performance.now() < end) await ask();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const elapsed = (performance.now() - start) / 1000;
  const p99Ms = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;
  return { requests: times.length, perSecond: times.length / elapsed, p99Ms };
};
