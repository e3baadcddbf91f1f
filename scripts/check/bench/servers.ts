/**
 * Starts the servers of the benchmark, each in a process of its own, and measures their rate, latency and CPU
 * time under load.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Amount, Load, LoadRequest } from './load.ts';
import { cpuSeconds, median } from './measure.ts';
import type { Comparison } from './table.ts';

export interface Server {
  readonly origin: string;
  readonly child: ChildProcess;
}

/** Starts a script of this folder, and waits until it announces its address. */
export async function startServer(
  script: string,
  env: NodeJS.ProcessEnv = {},
  nodeOptions: string[] = [],
): Promise<Server> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), {
    env: { ...process.env, ...env },
    execArgv: nodeOptions,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${script} ended before it listened`);
  });
  const [{ origin }] = (await Promise.race([once(child, 'message'), ended])) as [{ origin: string }];
  ended.catch(() => {});
  return { origin, child };
}

export function stop(servers: readonly Server[]): void {
  for (const { child } of servers) child.kill();
}

export interface Cost {
  readonly perSecond: number;
  readonly p99: number;
  /** CPU time of a request in microseconds. */
  readonly cpu: number;
}

export async function measureCost(
  load: Load,
  server: Server,
  request: LoadRequest,
  amount: Amount,
): Promise<Cost> {
  const before = cpuSeconds(server.child.pid);
  const { requests, perSecond, p99Ms } = await load(server.origin, request, amount);
  return { perSecond, p99: p99Ms, cpu: ((cpuSeconds(server.child.pid) - before) / requests) * 1e6 };
}

export interface Turn {
  readonly ours: Cost;
  readonly floor: Cost;
}

/** Measures our server and the floor in turn, after a warm-up of each. */
export async function takeTurns(
  turns: number,
  floor: () => Promise<Cost>,
  ours: () => Promise<Cost>,
): Promise<Turn[]> {
  await floor();
  await ours();
  const costs: Turn[] = [];
  for (let turn = 0; turn < turns; turn++) costs.push({ floor: await floor(), ours: await ours() });
  return costs;
}

/** Compares the rates of our server and of the floor, by the medians of their turns. */
export function compareRates(
  names: Pick<Comparison, 'name' | 'floorName'>,
  turns: readonly Turn[],
  minRatio?: number,
): Comparison {
  const medianOf = (side: keyof Turn, figure: keyof Cost) => median(turns.map((turn) => turn[side][figure]));
  const medians = (figure: keyof Cost) => ({
    ours: medianOf('ours', figure),
    floor: medianOf('floor', figure),
  });
  const hasLatency = turns.every(({ ours, floor }) => !Number.isNaN(ours.p99 + floor.p99));
  return {
    ...names,
    unit: '/s',
    ...medians('perSecond'),
    ratio: median(turns.map(({ ours, floor }) => ours.perSecond / floor.perSecond)),
    ...(hasLatency && { p99: medians('p99') }),
    cpu: medians('cpu'),
    ...(minRatio !== undefined && { target: { of: 'ratio', bound: 'at least', value: minRatio } }),
  };
}

/** Compares the CPU time of a request, which a busy load generator does not hide. */
export function compareCpu(rates: Comparison, turns: readonly Turn[], maxRatio: number): Comparison {
  return compareCosts(`CPU of ${rates.name}`, rates, turns, 'cpu', maxRatio);
}

/** Compares the 99th percentiles of the time until the answer. */
export function compareP99(rates: Comparison, turns: readonly Turn[], maxRatio: number): Comparison {
  return compareCosts(`p99 of ${rates.name}`, rates, turns, 'p99', maxRatio);
}

function compareCosts(
  name: string,
  rates: Comparison,
  turns: readonly Turn[],
  figure: 'cpu' | 'p99',
  maxRatio: number,
): Comparison {
  const medians = rates[figure] ?? { ours: Number.NaN, floor: Number.NaN };
  return {
    name,
    floorName: rates.floorName,
    unit: figure === 'cpu' ? 'µs' : 'ms',
    ...medians,
    ratio: median(turns.map(({ ours, floor }) => ours[figure] / floor[figure])),
    target: { of: 'ratio', bound: 'at most', value: maxRatio },
  };
}
