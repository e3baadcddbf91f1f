/**
 * `npm run bench`: measures each figure together with its floor, a bare equivalent, in the same run. Both
 * take turns, since a machine's speed drifts, and the medians of the turns are compared. If other programs
 * use the machine, the CPU time of a request changes less than its rate.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { command, type Result, runAsProcess } from '../../../src/cli/command.ts';
import { integer } from '../../../src/cli/values.ts';
import { quantity } from '../../../src/library/wording.ts';
import { measureVerification } from './attestation.ts';
import { drawChart } from './chart.ts';
import { benchAttestation, benchSalt, benchSigning } from './crypto.ts';
import { benchCold, benchWarm, withHttpServers } from './http.ts';
import { findLoad, type Load } from './load.ts';
import { benchPeers, type PeerResult } from './peers.ts';
import { benchPlaces } from './places.ts';
import { benchRelay } from './relay.ts';
import { LIMIT, measureSealing } from './sealing.ts';
import { benchStart } from './start.ts';
import { type Comparison, formatTable, isMet, toRows } from './table.ts';

const OUT = new URL('../../../out/', import.meta.url);
const TURNS = 5;

async function benchServers(
  load: Load,
  furtherRequests: number,
  env: Readonly<Record<string, string | undefined>>,
) {
  return await withHttpServers(async (servers) => ({
    rows: [
      ...(await benchWarm(load, servers, TURNS, furtherRequests)),
      ...(await benchCold(load, servers)),
      await benchAttestation(load, servers.weather),
    ],
    peers: await benchPeers(load, servers, env),
  }));
}

async function benchLibrary(): Promise<Comparison[]> {
  const { agreement, sealing } = await measureSealing();
  const { floor, verify } = await measureVerification(50);
  return [
    {
      name: 'a sealed call, opened and answered',
      floorName: 'key agreement',
      unit: 'µs',
      ours: sealing,
      floor: agreement,
      ratio: sealing / agreement,
      target: { of: 'ratio', bound: 'at most', value: LIMIT },
    },
    {
      name: 'verification of a document',
      floorName: 'five P-384 verifications',
      unit: 'ms',
      ours: verify,
      floor,
      ratio: verify / floor,
    },
  ];
}

export const main = command({
  name: 'bench',
  program: 'npm run bench --',
  purpose: `Compares the server with bare equivalents, in alternating turns, and writes out/bench.svg. The command does not fail if a
target is missed: on a busy machine, targets mean little. The load comes from wrk where it is installed, otherwise from autocannon.`,
  arguments: {},
  options: {
    requests: {
      value: '<number>',
      help: 'warm requests between the two measurements of memory',
      schema: integer(1, 10_000_000),
      default: '100000',
    },
  },
  notes: `environment:
  NAUTILUS_BIN     the server of Nautilus, to measure beside ours
  NAUTILUS_TS_DIR  the folder of nautilus-ts, to measure beside ours

exit codes: 0 done; 1 failed; 2 invalid command line`,
  async run({ options: { requests: furtherRequests } }, { env }) {
    const { name, load } = findLoad();
    // The library comes first, since it is measured in this process. The other measurements fill this process
    // with objects and code.
    const library = await benchLibrary();
    const signing = await benchSigning();
    const { rows, peers } = await benchServers(load, furtherRequests, env);
    const comparisons = [
      ...rows,
      await benchSalt(load),
      ...library,
      signing,
      await benchPlaces(),
      ...(await benchRelay(load)),
      ...(await benchStart()),
    ];
    const processor = cpus()[0]?.model ?? 'an unknown processor';
    const cores = `${quantity(availableParallelism(), 'core')} of ${processor}`;
    const title = `Load from ${name}; Node ${process.version}, ${process.arch}, ${cores}`;
    return await report(title, comparisons, peers);
  },
});

async function report(
  title: string,
  comparisons: readonly Comparison[],
  peers: Readonly<Record<string, PeerResult>>,
): Promise<Result> {
  const chart = new URL('bench.svg', OUT);
  mkdirSync(OUT, { recursive: true });
  writeFileSync(chart, drawChart(title, comparisons));
  const rows = comparisons.map((comparison) => ({ ...comparison, met: isMet(comparison) ?? null }));
  const text = [
    `${title}. Medians of ours / floor. CPU is the time of the server's process for a request.`,
    formatTable(toRows(comparisons)),
    ...Object.entries(peers).flatMap(([name, peer]) => formatLines(name, peer)),
    `chart: ${fileURLToPath(chart)}`,
  ];
  return { json: { title, rows, peers }, text: text.join('\n') };
}

function formatLines(name: string, { skipped, asked: ratesByRequest = {}, megabytes }: PeerResult): string[] {
  if (skipped !== undefined) return [`${name}: skipped, ${skipped}`];
  const lines = Object.entries(ratesByRequest).map(([request, rates]) => {
    if ('skipped' in rates) return `${name}, ${request}: skipped, ${rates.skipped}`;
    return `${name}, ${request}: ${Math.round(rates.theirs)}/s, ours ${Math.round(rates.ours)}/s`;
  });
  return megabytes === undefined ? lines : [...lines, `${name}: ${megabytes.toFixed(0)} MB resident`];
}

if (import.meta.main) await runAsProcess(main);
