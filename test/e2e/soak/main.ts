/**
 * `make soak`: overloads the server while the services around it fail and recover, and prints its findings. A
 * finding about safety that does not hold ends it with exit code 1; a figure that a busy machine misses does
 * not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { command, runAsProcess } from '../../../src/cli/command.ts';
import { integer } from '../../../src/cli/values.ts';
import { formatCounts, Judge } from './answers.ts';
import { tryDescriptors } from './descriptors.ts';
import { formatFindings } from './finding.ts';
import { SaltUser } from './key_faults.ts';
import { Histogram, Load } from './load.ts';
import { NodeFaults } from './node_faults.ts';
import { tryNsmFaults } from './nsm_faults.ts';
import { Part, type Sizes } from './processes.ts';
import { SLOTS } from './settings.ts';
import { tryUpstreamFaults } from './upstream_faults.ts';
import { World } from './world.ts';

/** Duration of a measurement, in milliseconds. */
const MEASURE_MS = 1000;
/** Pause without load before sizes are measured, in milliseconds. */
const QUIET_MS = 500;
/** Time after which the log has counted all refusals, in milliseconds. */
const REFUSALS_MS = 1500;
/** Shortest run, in seconds, that has time for a node that hangs. */
const HANG_SECONDS = 120;
/**
 * Limits on growth after the first measurement: of memory and heap, in MB, and of descriptors. For some time,
 * the server keeps a connection to the upstream for each slot. Only one of the two measurements may see them.
 */
const GROWTH = { resident: 64, heap: 16, descriptors: 16 + SLOTS } as const;
const MAX_REFUSAL = 0.1;
const REFUSED_CONNECTIONS = 8;

export const main = command({
  name: 'soak',
  program: 'make soak',
  purpose: 'Overloads the server while the services around it fail and recover, and prints its findings.',
  arguments: {},
  options: {
    seconds: {
      value: '<number>',
      help: 'time after which no further round of faults begins',
      schema: integer(1, 1_000_000),
      default: '3600',
    },
  },
  notes: 'exit codes: 0 no finding failed (a busy machine may have missed figures); 1 a finding failed',
  async run({ options: { seconds } }, { io }) {
    const start = performance.now();
    const elapsed = () => (performance.now() - start) / 1000;
    const [world, user, node] = await Promise.all([World.start(), SaltUser.start(), NodeFaults.start()]);
    const { findings } = world;
    try {
      // These faults take the longest, and hardly use the CPU, so the measurements run at the same time.
      const firstKeys = user.tryFaults(findings);
      firstKeys.catch(() => {});
      await measureCapacity(world);
      await measureRefusal(world);
      const before = await measureQuiet(world);
      let rounds = 0;
      let longest = 0;
      do {
        const began = elapsed();
        // The speed of a machine that does other work varies, so each round measures the capacity again.
        if (rounds > 0) await measureCapacity(world);
        await measureOverload(world);
        const keys = rounds === 0 ? firstKeys : user.tryFaults(findings);
        const chain = node.tryFaults(findings, seconds >= HANG_SECONDS);
        await Promise.all([
          keys,
          chain,
          tryDescriptors(findings),
          tryNsmFaults(world),
          tryUpstreamFaults(world),
        ]);
        rounds += 1;
        longest = Math.max(longest, elapsed() - began);
        compareSizes(world, before, await measureQuiet(world));
        io.error(`round ${rounds}: ${Math.round(elapsed())} s, ${formatCounts(world.judge.codes)}`);
      } while (elapsed() + longest < seconds && !findings.hasFailed);
      await sleep(REFUSALS_MS);
      judgeAnswers(world);
      const isAlive = [world.weather, user.service, node].every(({ isEnded }) => !isEnded);
      findings.add('no process has crashed', isAlive, isAlive ? 'all run' : 'one has ended', 'all run');
    } finally {
      world.close();
      user.service.signal('SIGKILL');
      await node.close();
    }
    const { rows, hasFailed } = findings;
    return { exit: hasFailed ? 1 : 0, json: { rows }, text: formatFindings(rows) };
  },
});

/**
 * Measures the server's capacity, the CPU time of a cold request, and the 99th percentile of single requests.
 */
async function measureCapacity(world: World): Promise<void> {
  const { load, weather } = world;
  await load.closedLoop(SLOTS, 500);
  const cpu = weather.cpu;
  const { requests, seconds } = await load.closedLoop(SLOTS, MEASURE_MS);
  world.capacity = requests / seconds;
  world.acceptedCpu = (weather.cpu - cpu) / requests;
  load.histogram = new Histogram();
  await load.closedLoop(1, MEASURE_MS);
  world.unloadedP99 = load.histogram.p99;
  load.histogram = undefined;
}

/** Measures the CPU time of a refusal while all slots are taken. */
async function measureRefusal({
  load,
  weather,
  upstream,
  judge,
  findings,
  acceptedCpu,
}: World): Promise<void> {
  upstream.tell({ mode: 'hangs' });
  const heldRequests = Array.from({ length: SLOTS }, () => load.send(load.nextPlace()));
  await sleep(200);
  // The first refusals are slow, since V8 has not compiled their functions.
  await load.closedLoop(REFUSED_CONNECTIONS, MEASURE_MS);
  const before = judge.codes.get('OVERLOADED') ?? 0;
  const cpu = weather.cpu;
  await load.closedLoop(REFUSED_CONNECTIONS, MEASURE_MS);
  const refusals = (judge.codes.get('OVERLOADED') ?? 0) - before;
  const refusalCpu = (weather.cpu - cpu) / refusals;
  upstream.tell({ mode: 'well' });
  await Promise.all(heldRequests);
  const bareCpu = await measureBare();
  const share = refusalCpu / acceptedCpu;
  const [refusal, accepted, floor] = [refusalCpu, acceptedCpu, bareCpu].map((cpu) => Math.round(cpu * 1e6));
  findings.addFigure(
    "CPU time of a refusal, as a share of an accepted cold request's",
    share <= MAX_REFUSAL,
    `${(share * 100).toFixed(0)} % (${refusal} µs of ${accepted} µs; a bare server takes ${floor} µs)`,
    `at most ${MAX_REFUSAL * 100} %`,
  );
}

/** Returns the CPU time of a refusal by the bare Node server, in seconds. */
async function measureBare(): Promise<number> {
  const bare = await Part.start('./bare.ts', {});
  try {
    const load = new Load(bare.origin, new Judge());
    await load.closedLoop(REFUSED_CONNECTIONS, MEASURE_MS);
    const cpu = bare.cpu;
    const { requests } = await load.closedLoop(REFUSED_CONNECTIONS, MEASURE_MS);
    await load.close();
    return (bare.cpu - cpu) / requests;
  } finally {
    bare.signal('SIGKILL');
  }
}

/** Measures the 99th percentile of accepted requests under overload, without a fault. */
async function measureOverload(world: World): Promise<void> {
  const { load, findings, capacity, unloadedP99, overloads } = world;
  const histogram = new Histogram();
  load.histogram = histogram;
  load.begin(capacity * 1.5);
  await sleep(2 * MEASURE_MS);
  await load.pause();
  load.histogram = undefined;
  const boundMs = (2 * SLOTS * 1000) / capacity + unloadedP99;
  overloads.push({ capacity, p99: histogram.p99, boundMs });
  const [worst] = overloads.toSorted((a, b) => b.p99 / b.boundMs - a.p99 / a.boundMs);
  const boundedRounds = overloads.filter(({ p99, boundMs: bound }) => p99 <= bound).length;
  if (worst === undefined) return;
  findings.addFigure(
    'p99 of accepted requests at 150 % of the capacity',
    boundedRounds === overloads.length,
    `at worst ${worst.p99} ms, at ${Math.round(worst.capacity)} requests a second; in bounds in ${boundedRounds} of ${overloads.length} rounds`,
    `at most ${Math.round(worst.boundMs)} ms`,
  );
}

async function measureQuiet({ load, weather }: World): Promise<Sizes> {
  await load.close();
  await sleep(QUIET_MS);
  return await weather.measure();
}

function compareSizes({ findings }: World, before: Sizes, after: Sizes): void {
  for (const name of ['resident', 'heap', 'descriptors'] as const) {
    const unit = name === 'descriptors' ? '' : ' MB';
    const [first, last] = [before[name], after[name]].map((size) => size.toFixed(0));
    findings.add(
      `growth: ${name}`,
      after[name] <= before[name] + GROWTH[name],
      `${first}${unit} before, ${last}${unit} after`,
      `at most ${GROWTH[name]}${unit} more`,
    );
  }
}

function judgeAnswers({ judge, findings, weather }: World): void {
  const { codes, wrong, broken } = judge;
  const signed = `${codes.get('SIGNED') ?? 0} signed, ${wrong.length} wrong`;
  findings.add(
    'no signed answer is wrong',
    wrong.length === 0,
    [signed, ...wrong.slice(0, 3)].join('; '),
    '0 wrong',
  );
  const errors = new Map([...codes].filter(([code]) => code !== 'SIGNED'));
  findings.add('each error has a code', !errors.has('UNTYPED'), `${errors.size} codes`, 'none is UNTYPED');
  const miscounted = [...errors].filter(([code, count]) => weather.logged.get(code) !== count);
  const counts = miscounted.map(
    ([code, count]) => `${count} ${code}, ${weather.logged.get(code) ?? 0} in the log`,
  );
  findings.add(
    'the log counts each error',
    counts.length === 0,
    formatCounts(errors),
    counts.join('; ') || 'the same in the log',
  );
  findings.add(
    'each request is answered',
    broken.size === 0,
    `without an answer: ${formatCounts(broken)}`,
    'none',
  );
}

if (import.meta.main) await runAsProcess(main);
