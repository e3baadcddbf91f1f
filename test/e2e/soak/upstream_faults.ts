/** Tries faults of the upstream, stopped processes and a wrong clock, under overload. */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatCounts, since } from './answers.ts';
import { SLOTS } from './settings.ts';
import type { World } from './world.ts';

/** Time that the weather application keeps a failure, in milliseconds: FAILURE_MS there. */
const KEPT_FAILURE_MS = 5000;
/** Time within which the weather service must answer, in milliseconds: BOUNDS there. */
const TIME_LIMIT_MS = 5000;
const HOUR_MS = 3_600_000;
/** Load under which the faults are tried, as a multiple of the capacity. */
const OVERLOAD = 1.5;

interface Fault {
  readonly name: string;
  readonly ms: number;
  /** Pattern of the code that at least one caller must get. */
  readonly code: RegExp;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** A place whose failure the server keeps for a while. */
interface FailedPlace {
  readonly fault: string;
  readonly place: string;
  readonly at: number;
}

function listFaults(world: World): Fault[] {
  const { weather } = world;
  // Requests take all slots within half of this time. The rest is for a busy machine, which is slower.
  const stoppedMs = Math.max(800, (2 * SLOTS * 1000) / (world.capacity * OVERLOAD));
  return [
    {
      name: 'upstream hangs',
      ms: TIME_LIMIT_MS + 1200,
      code: /^WEATHER_TIMEOUT$/,
      begin: () => world.upstream.tell({ mode: 'hangs' }),
      end: () => world.upstream.tell({ mode: 'well' }),
    },
    {
      name: 'upstream is dead',
      ms: 1000,
      code: /^WEATHER_UNREACHABLE$/,
      begin: () => world.upstream.kill(),
      end: () => world.restartUpstream(),
    },
    {
      name: 'upstream lies',
      ms: 1000,
      code: /^WEATHER_(?:MALFORMED|STALE|OVERSIZED|UPSTREAM_BROKEN)$/,
      begin: () => world.upstream.tell({ mode: 'lies' }),
      end: () => world.upstream.tell({ mode: 'well' }),
    },
    {
      name: 'clock is 2 h ahead',
      ms: 500,
      code: /^WEATHER_STALE$/,
      begin: () => world.tell({ clockMs: 2 * HOUR_MS }),
      end: () => world.tell({ clockMs: 0 }),
    },
    {
      name: 'clock is 2 h behind',
      ms: 500,
      code: /^WEATHER_FUTURE$/,
      begin: () => world.tell({ clockMs: -2 * HOUR_MS }),
      end: () => world.tell({ clockMs: 0 }),
    },
    {
      name: 'upstream is stopped (SIGSTOP)',
      ms: stoppedMs,
      code: /^OVERLOADED$/,
      begin: () => world.upstream.signal('SIGSTOP'),
      end: () => world.upstream.signal('SIGCONT'),
    },
    {
      name: 'server is stopped (SIGSTOP)',
      ms: stoppedMs,
      code: /^OVERLOADED$/,
      begin: () => weather.signal('SIGSTOP'),
      async end() {
        weather.signal('SIGCONT');
        await sleep(500);
      },
    },
  ];
}

/** Tries each fault under overload, and sends one request after its end. */
export async function tryUpstreamFaults(world: World): Promise<void> {
  const failed: FailedPlace[] = [];
  for (const fault of listFaults(world)) failed.push(...(await tryFault(world, fault)));
  await askAgain(world, failed);
}

async function tryFault(world: World, fault: Fault): Promise<FailedPlace[]> {
  const { load, judge, findings } = world;
  const { name, ms, code } = fault;
  const before = new Map(judge.codes);
  load.begin(world.capacity * OVERLOAD);
  await fault.begin();
  const place = load.nextPlace();
  await sleep(ms);
  await fault.end();
  await load.pause();
  const codes = since(judge.codes, before);
  const isTyped = [...codes.keys()].some((name) => code.test(name)) && !codes.has('UNTYPED');
  findings.add(`${name}: each answer has a code`, isTyped, formatCounts(codes), String(code.source));
  const first = await load.send(load.nextPlace());
  findings.add(`${name}: the first attempt after the fault`, first === 'SIGNED', first, 'SIGNED');
  return await causeKeptFailure(world, fault, place);
}

/** Makes one request for a place fail, so that the server keeps this failure for a while. */
async function causeKeptFailure(world: World, fault: Fault, place: string): Promise<FailedPlace[]> {
  if (!/is dead$|lies$/.test(fault.name)) return [];
  await fault.begin();
  const code = await world.load.send(place);
  const at = performance.now();
  await fault.end();
  if (!fault.code.test(code) && !code.startsWith('WEATHER_')) return [];
  return [{ fault: fault.name, place, at }];
}

/** Requests the failed places again, once the server no longer keeps their failures. */
async function askAgain({ load, findings }: World, failed: readonly FailedPlace[]): Promise<void> {
  for (const { fault, place, at } of failed) {
    await sleep(Math.max(0, at + KEPT_FAILURE_MS + 50 - performance.now()));
    const code = await load.send(place);
    const name = `${fault}: the same place after ${KEPT_FAILURE_MS / 1000} s`;
    findings.add(name, code === 'SIGNED', code, 'SIGNED');
  }
}
