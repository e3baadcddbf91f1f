import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Load } from '../../../../scripts/check/bench/load.ts';
import { benchPeers } from '../../../../scripts/check/bench/peers.ts';
import { listenOnLoopback } from '../../../../src/testing/fakes.ts';
import { startFakeWeatherApi } from '../../../../src/testing/weather_api.ts';

/**
 * Source of a peer. It answers GET by itself, and requests the weather service over HTTPS for any other
 * request. It writes to a file what answer other hosts gave.
 */
const PEER = `
const { createServer } = require('node:http');
const { writeFileSync } = require('node:fs');
const reach = (url) => fetch(url).then(({ status }) => status, () => 'nothing');
createServer(async (request, response) => {
  if (request.method === 'GET') return response.end('Pong!');
  const url = 'https://api.weatherapi.com/v1/current.json?q=Oslo&key=' + process.env.API_KEY;
  const report = { pid: process.pid, other: await reach('https://example.com/'), plain: await reach('http://example.com/') };
  writeFileSync(__dirname + '/report.json', JSON.stringify(report));
  response.writeHead(await fetch(url).then(({ status }) => status, () => 502)).end();
}).listen(process.env.PORT, process.env.HOST);
`;

/** A load that makes only one request. */
const load: Load = async (origin, { path, bodies }) => {
  const [body] = bodies ?? [];
  expect((await fetch(origin + path, body === undefined ? {} : { method: 'POST', body })).status).toBe(200);
  return { requests: 1, perSecond: 1000, p99Ms: 1 };
};

async function listenOurs(): Promise<{ origin: string; port: number }> {
  const { origin, close } = await listenOnLoopback((_request, response) => void response.end('Pong!'));
  onTestFinished(close);
  return { origin, port: Number(new URL(origin).port) };
}

function writePeer(source: string) {
  const folder = mkdtempSync(join(tmpdir(), 'peer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const bin = join(folder, 'peer.cjs');
  writeFileSync(bin, `#!/usr/bin/env node\n${source}`);
  chmodSync(bin, 0o755);
  return { bin, readReport: () => JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) };
}

/** A port on which no server listens. */
const FREE_PORT = 9;

async function ask(bin: string, port = FREE_PORT) {
  const [ours, fake] = [await listenOurs(), await startFakeWeatherApi()];
  onTestFinished(fake.close);
  return await benchPeers(load, { weather: ours, fake }, { NAUTILUS_BIN: bin }, port);
}

test('a peer gets the same requests as our own server, reaches only the fake, and is ended afterwards', async () => {
  const { bin, readReport } = writePeer(PEER);
  const { Nautilus, 'nautilus-ts': nautilusTs } = await ask(bin);
  const figures = { theirs: 1000, ours: 1000 };
  expect(Nautilus?.asked).toEqual({
    'GET /': figures,
    '/process_data, warm': figures,
    '/process_data, cold': figures,
  });
  expect(Nautilus?.megabytes).toBeGreaterThan(10);
  expect(nautilusTs).toEqual({ skipped: 'NAUTILUS_TS_DIR is not set' });
  const { pid, ...reached } = readReport();
  expect(reached).toEqual({ other: 'nothing', plain: 'nothing' });
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test('a peer whose answer is an error is skipped for that request', async () => {
  const { bin } = writePeer(PEER.replace('current.json?q=Oslo', 'current.json?q=!broken'));
  expect((await ask(bin)).Nautilus?.asked).toMatchObject({
    'GET /': { theirs: 1000 },
    '/process_data, warm': { skipped: 'its answer is 500' },
  });
});

/**
 * Returns whether a process runs. A process that has ended but was not reaped yet has no command line any
 * more.
 */
function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
}

test('a peer that ends, that is missing, or whose port is taken is skipped', async () => {
  const nautilus = async (bin: string, port?: number) => (await ask(bin, port)).Nautilus;
  expect(await nautilus(writePeer('process.exit(1);').bin)).toEqual({
    skipped: 'it ended before it listened',
  });
  expect(await nautilus('/missing/peer')).toEqual({
    skipped: expect.stringContaining("it can't be started"),
  });
  const { port } = await listenOurs();
  expect(await nautilus('/missing/peer', port)).toEqual({ skipped: `port ${port} is taken` });
});
