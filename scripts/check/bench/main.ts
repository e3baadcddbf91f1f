/**
 * `npm run bench`. Every figure is a ratio to a bare equivalent that is measured in the same run, turn by
 * turn, since a machine's speed drifts; the medians of the turns are compared.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { EphemeralKey } from '../../../src/server/key.ts';
import { command, runAsProcess } from '../../command.ts';
import { formatTable } from './table.ts';

const TURNS = 7;
const REQUEST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ payload: { location: 'San Francisco' } }),
} as const;

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] as number;

/** Calls a second, over about 0.3 s. */
function rate(call: () => unknown): number {
  const start = performance.now();
  let calls = 0;
  for (; performance.now() - start < 300; calls += 20) for (let i = 0; i < 20; i++) call();
  return (calls / (performance.now() - start)) * 1000;
}

function benchSigning() {
  const message = {
    intent: 0,
    timestamp_ms: 1744038900000n,
    payload: { location: 'San Francisco', temperature: 13n },
  };
  const bytes = WeatherResponse.message.serialize(message).toBytes();
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = EphemeralKey.create();
  const bare = () => sign(null, bytes, privateKey);
  const ours = () => key.sign(WeatherResponse.message.serialize(message).toBytes());
  const turns = Array.from({ length: TURNS }, () => ({ bare: rate(bare), ours: rate(ours) }));
  return {
    bare: median(turns.map((turn) => turn.bare)),
    ours: median(turns.map((turn) => turn.ours)),
    ratio: median(turns.map((turn) => turn.ours / turn.bare)),
  };
}

interface Peer {
  readonly url: string;
  readonly child: ChildProcess;
}

async function startPeer(script: string): Promise<Peer> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = fork(path, { execArgv: ['--expose-gc'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${script} ended before it listened`);
  });
  const [{ url }] = (await Promise.race([once(child, 'message'), ended])) as [{ url: string }];
  ended.catch(() => {});
  return { url: `${url}/process_data`, child };
}

async function load({ url }: Peer, how: { duration: number } | { amount: number }) {
  const result = await autocannon({ url, connections: 50, ...REQUEST, ...how });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${url}: ${result.non2xx} refused, ${result.errors} failed`);
  return { perSecond: result['2xx'] / result.duration, p50: result.latency.p50, p99: result.latency.p99 };
}

async function memory({ child }: Peer): Promise<{ rss: number; heapUsed: number }> {
  child.send('memory');
  const [usage] = await once(child, 'message');
  return usage as { rss: number; heapUsed: number };
}

async function benchHttp() {
  const echo = await startPeer('./echo.ts');
  const weather = await startPeer('./weather.ts');
  try {
    for (const peer of [echo, weather]) await load(peer, { amount: 20_000 });
    const turns: Record<'bare' | 'ours', Awaited<ReturnType<typeof load>>>[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      turns.push({ bare: await load(echo, { duration: 2 }), ours: await load(weather, { duration: 2 }) });
    }
    const before = await memory(weather);
    await load(weather, { amount: 100_000 });
    const after = await memory(weather);
    const of = (who: 'bare' | 'ours', figure: 'perSecond' | 'p50' | 'p99') =>
      median(turns.map((turn) => turn[who][figure]));
    return {
      of,
      ratio: median(turns.map(({ ours, bare }) => ours.perSecond / bare.perSecond)),
      before,
      after,
    };
  } finally {
    for (const { child } of [echo, weather]) child.kill();
  }
}

const percent = (ratio: number) => `${(ratio * 100).toFixed(0)} %`;
const perSecond = (value: number) => `${Math.round(value)}/s`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

function rowsOf(
  signing: ReturnType<typeof benchSigning>,
  http: Awaited<ReturnType<typeof benchHttp>>,
): Record<string, object> {
  return {
    'signing + BCS': {
      ours: perSecond(signing.ours),
      'bare OpenSSL ed25519 / node:http echo': perSecond(signing.bare),
      ratio: percent(signing.ratio),
      target: '70 %',
    },
    '/process_data, warm': {
      ours: perSecond(http.of('ours', 'perSecond')),
      'bare OpenSSL ed25519 / node:http echo': perSecond(http.of('bare', 'perSecond')),
      ratio: percent(http.ratio),
      target: '50 %',
    },
    ...Object.fromEntries(
      (['p50', 'p99'] as const).map((figure) => [
        `latency ${figure}, 50 connections`,
        {
          ours: `${http.of('ours', figure)} ms`,
          'bare OpenSSL ed25519 / node:http echo': `${http.of('bare', figure)} ms`,
        },
      ]),
    ),
    'heap, then after 100k requests more': {
      ours: `${megabytes(http.before.heapUsed)} → ${megabytes(http.after.heapUsed)}`,
      target: 'flat',
    },
    'resident, then after 100k requests more': {
      ours: `${megabytes(http.before.rss)} → ${megabytes(http.after.rss)}`,
      target: 'flat',
    },
  };
}

export const main = command({
  usage: `usage: npm run bench

Measures the server, and its signing, in ratios to bare equivalents.

exit codes: 0 done; 1 failed; 2 invalid command line`,
  options: {},
  async run() {
    const rows = rowsOf(benchSigning(), await benchHttp());
    return { json: rows, text: formatTable(rows) };
  },
});

if (import.meta.main) await runAsProcess(main);
