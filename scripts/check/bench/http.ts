/** Measures the weather server under load, in comparison with bare servers of Node. */
import { quantity } from '../../../src/library/wording.ts';
import { COLD, type Load, type LoadRequest, PONG, WARM } from './load.ts';
import { residentMegabytes } from './measure.ts';
import {
  compareCpu,
  compareP99,
  compareRates,
  measureCost,
  type Server,
  startServer,
  stop,
  takeTurns,
} from './servers.ts';
import type { Comparison } from './table.ts';

const WARM_CONNECTIONS = 32;
/**
 * Numbers of connections. Each has the minimum ratios of our rate to the rate of a bare proxy, and to the
 * rate of a proxy that signs, as this project must.
 */
const COLD_LOADS = [
  { connections: 32, bareRate: 0.85, signingRate: 0.85 },
  { connections: 128, bareRate: 0.45, signingRate: 0.85 },
] as const;
/** Maximum ratios of a cold request's CPU time and 99th percentile to those of the proxy that signs. */
const MAX_COLD_CPU = 1.45;
const MAX_COLD_P99 = 2;
const COLD_TURNS = 3;
/** Maximum ratio of our 99th percentile to that of the echo server. */
const P99_FACTOR = 3;
const MAX_MEGABYTES = 180;
/** Maximum ratio of the memory after the load to the memory before it. */
const MAX_GROWTH = 1.1;
/** Options with which `npm start` and the image start Node. */
const NODE_OPTIONS = ['--max-semi-space-size=8'];

export interface HttpServers {
  readonly fake: Server;
  readonly echo: Server;
  readonly cold: Server;
  readonly signing: Server;
  readonly weather: Server;
}

export async function withHttpServers<T>(use: (servers: HttpServers) => Promise<T>): Promise<T> {
  const started: Server[] = [];
  const start = async (script: string, env?: NodeJS.ProcessEnv, options?: string[]) => {
    const server = await startServer(script, env, options);
    started.push(server);
    return server;
  };
  try {
    const fake = await start('./fake.ts');
    const FAKE = fake.origin;
    const echo = await start('./echo.ts');
    const cold = await start('./cold.ts', { FAKE });
    const signing = await start('./cold.ts', { FAKE, SIGNS: 'yes' });
    const weather = await start('./weather.ts', { FAKE }, NODE_OPTIONS);
    return await use({ fake, echo, cold, signing, weather });
  } finally {
    stop(started);
  }
}

/** Measures requests for one place, and the memory that further requests take. */
export async function benchWarm(
  load: Load,
  { echo, weather }: HttpServers,
  turns: number,
  furtherRequests: number,
): Promise<Comparison[]> {
  const amount = { connections: WARM_CONNECTIONS, seconds: 2 };
  const short = { ...amount, seconds: 1 };
  const cost =
    (server: Server, request: LoadRequest, duration = amount) =>
    () =>
      measureCost(load, server, request, duration);
  const warm = await takeTurns(turns, cost(echo, WARM), cost(weather, WARM));
  const memory = await benchMemory(load, { echo, weather }, furtherRequests);
  const pong = await takeTurns(turns, cost(echo, PONG, short), cost(weather, PONG, short));
  const names = { name: `/process_data, warm, ${WARM_CONNECTIONS} connections`, floorName: 'JSON echo' };
  const rates = compareRates(names, warm, 0.5);
  return [
    rates,
    compareP99(rates, warm, P99_FACTOR),
    compareRates({ name: 'GET /', floorName: 'bare GET' }, pong, 0.7),
    ...memory,
  ];
}

async function benchMemory(
  load: Load,
  { echo, weather }: Pick<HttpServers, 'echo' | 'weather'>,
  furtherRequests: number,
): Promise<Comparison[]> {
  const before = residentMegabytes(weather.child.pid);
  const floor = residentMegabytes(echo.child.pid);
  for (let sent = 0; sent < furtherRequests; ) {
    const amount = { connections: WARM_CONNECTIONS, seconds: 2 };
    sent += (await load(weather.origin, WARM, amount)).requests;
  }
  const after = residentMegabytes(weather.child.pid);
  return [
    {
      name: 'resident memory after warm load',
      floorName: 'JSON echo',
      unit: 'MB',
      ours: before,
      floor,
      ratio: before / floor,
      target: { of: 'ours', bound: 'at most', value: MAX_MEGABYTES },
    },
    {
      name: `resident memory after ${quantity(furtherRequests, 'request')} more`,
      floorName: 'before them',
      unit: 'MB',
      ours: after,
      floor: before,
      ratio: after / before,
      target: { of: 'ratio', bound: 'at most', value: MAX_GROWTH },
    },
  ];
}

/** Measures requests for places that no earlier request named. */
export async function benchCold(load: Load, { cold, signing, weather }: HttpServers): Promise<Comparison[]> {
  const rows: Comparison[] = [];
  for (const { connections, bareRate, signingRate } of COLD_LOADS) {
    const name = `/process_data, cold, ${connections} connections`;
    const cost = (server: Server) => () => measureCost(load, server, COLD, { connections, seconds: 2 });
    const bare = await takeTurns(COLD_TURNS, cost(cold), cost(weather));
    rows.push(compareRates({ name, floorName: 'bare proxy' }, bare, bareRate));
    const signed = await takeTurns(COLD_TURNS, cost(signing), cost(weather));
    const names = { name: `${name}, beside a proxy that signs`, floorName: 'signing proxy' };
    const rates = compareRates(names, signed, signingRate);
    rows.push(rates, compareCpu(rates, signed, MAX_COLD_CPU), compareP99(rates, signed, MAX_COLD_P99));
  }
  return rows;
}
