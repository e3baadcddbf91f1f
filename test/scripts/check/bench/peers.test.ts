import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Load } from '../../../../scripts/check/bench/load.ts';
import { benchPeers } from '../../../../scripts/check/bench/peers.ts';
import { listenOnLoopback } from '../../../../scripts/dev/stand_ins.ts';

/** Answers GET, and can't reach its upstream; tells which proxy it was started with. */
const PEER = `
const { createServer } = require('node:http');
require('node:fs').writeFileSync(__dirname + '/told.json', JSON.stringify({ pid: process.pid, proxy: process.env.HTTPS_PROXY }));
createServer((request, response) => {
  response.writeHead(request.method === 'GET' ? 200 : 502).end('Pong!');
}).listen(process.env.PORT, process.env.HOST);
`;

/** One request. */
const load: Load = async (origin, { path }) => {
  expect((await fetch(origin + path)).status).toBe(200);
  return { requests: 1, perSecond: 1000, p99Ms: 1 };
};

async function listenOurs(): Promise<{ origin: string; port: number }> {
  const { origin, close } = await listenOnLoopback((_request, response) => void response.end('Pong!'));
  onTestFinished(close);
  return { origin, port: Number(new URL(origin).port) };
}

function writePeer(source: string): { bin: string; told: () => { pid: number; proxy: string } } {
  const folder = mkdtempSync(join(tmpdir(), 'peer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const bin = join(folder, 'peer.cjs');
  writeFileSync(bin, `#!${process.execPath}\n${source}`);
  chmodSync(bin, 0o755);
  return { bin, told: () => JSON.parse(readFileSync(join(folder, 'told.json'), 'utf8')) };
}

/** Nobody listens there. */
const FREE_PORT = 9;

test('a peer is asked like ours, without a way to the real weather service, and ended afterwards', async () => {
  const { bin, told } = writePeer(PEER);
  const ours = await listenOurs();
  const { Nautilus, 'nautilus-ts': other } = await benchPeers(load, ours, { NAUTILUS_BIN: bin }, FREE_PORT);
  expect(Nautilus?.asked).toEqual({
    'GET /': { theirs: 1000, ours: 1000 },
    '/process_data, warm': { skipped: 'its answer is 502' },
    '/process_data, cold': { skipped: 'its answer is 502' },
  });
  expect(Nautilus?.megabytes).toBeGreaterThan(10);
  expect(other).toEqual({ skipped: 'NAUTILUS_TS_DIR is not set' });
  const { pid, proxy } = told();
  // One that the environment names would be its own.
  expect(proxy).toBe(process.env['HTTPS_PROXY'] ?? 'http://127.0.0.1:9');
  await expect.poll(() => isAlive(pid)).toBe(false);
});

/** A process that has ended but was not reaped yet has no command line any more. */
function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
}

test('a peer that ends, that is missing, or whose port is taken is skipped', async () => {
  const ours = await listenOurs();
  const ask = async (bin: string, port = FREE_PORT) =>
    (await benchPeers(load, ours, { NAUTILUS_BIN: bin }, port)).Nautilus;
  expect(await ask(writePeer('process.exit(1);').bin)).toEqual({ skipped: 'it ended before it listened' });
  expect(await ask('/missing/peer')).toEqual({ skipped: expect.stringContaining("it can't be started") });
  expect(await ask('/missing/peer', ours.port)).toEqual({ skipped: `port ${ours.port} is taken` });
});
