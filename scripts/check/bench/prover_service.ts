/**
 * `npm run bench:prover:service -- [small] [full]`: measures the whole proving service on the development
 * key, as `make prover` starts it. Measures latencies with one caller, requests per minute with several,
 * memory, and the time of each part.
 */
import { readFileSync } from 'node:fs';
import { command, runAsProcess } from '../../../src/cli/command.ts';
import { circuitSize, integer } from '../../../src/cli/values.ts';
import { getProof } from '../../../src/library/zklogin/index.ts';
import type { CircuitSize } from '../../../src/prover/profile.ts';
import { createLog } from '../../../src/service/log.ts';
import { type DevelopmentIssuer, startDevelopmentIssuer } from '../../../src/testing/issuer.ts';
import { startProver } from '../../../src/toolchain/dev/prover/service.ts';
import { builtArtifacts } from '../../../src/toolchain/prover/artifacts.ts';
import { residentMegabytes } from './measure.ts';
import { formatTable } from './table.ts';

/** Number of callers: as many as a backend admits, so that it refuses none. */
const CALLERS = 4;
const TIMEOUT_MS = 300_000;
const SAMPLE_MS = 50;

export const main = command({
  name: 'bench_prover_service',
  program: 'npm run bench:prover:service --',
  purpose: `Measures the proving service of make prover, in both sizes unless you name one: first with one caller, then with
${CALLERS} callers at once. Needs make prover-dev of each size, and an idle machine.`,
  arguments: { size: { schema: circuitSize, optional: true, repeated: true } },
  options: {
    requests: {
      value: '<number>',
      help: 'number of requests in each of the two measurements',
      schema: integer(CALLERS, 10_000),
      default: '30',
    },
  },
  async run({ args: { size: sizeArguments }, options: { requests } }, { io }) {
    const sizes = sizeArguments.length > 0 ? sizeArguments : circuitSize.options;
    const benches: Record<string, Bench> = {};
    for (const size of sizes) benches[size] = await benchSize(size, requests);
    for (const part of ['latency', 'memoryMegabytes', 'share'] as const) {
      const rows = Object.entries(benches).map(([size, bench]) => [size, bench[part]] as const);
      io.log(`\n${TITLES[part]}\n${formatTable(Object.fromEntries(rows))}`);
    }
    return { json: { requests, callers: CALLERS, benches } };
  },
});

const TITLES = {
  latency: `one caller: seconds until the proof; ${CALLERS} callers: requests a minute`,
  memoryMegabytes: 'peak memory in MB, with shared pages counted in each process',
  share: "one caller: each part's share of the wall time, in percent",
};

interface Bench {
  readonly latency: {
    p50: number;
    p99: number;
    max: number;
    'requests a minute': number;
    'p50 at once': number;
  };
  readonly memoryMegabytes: Readonly<Record<string, number>>;
  readonly share: Readonly<Record<string, number>>;
}

/**
 * A log line of the front end (`zkLogin:info`) or of the backend, with the time of each part in milliseconds.
 */
interface Line {
  readonly ms?: Readonly<Record<string, number>>;
  readonly witness_ms?: number;
  readonly engine_ms?: number;
}

async function benchSize(size: CircuitSize, requests: number): Promise<Bench> {
  const issuer = await startDevelopmentIssuer();
  const lines: Line[] = [];
  const recordLine = (line: string) => lines.push(JSON.parse(line) as Line);
  const prover = await startProver({
    artifacts: builtArtifacts(size),
    issuer,
    log: createLog('info', { write: recordLine }),
    onBackendLine: recordLine,
    env: {
      DEBUG: 'zkLogin:info',
      PROVER_TIMEOUT: String(TIMEOUT_MS / 1000),
      // No caller may be refused, however slow the machine is.
      ANSWER_SECONDS: String(TIMEOUT_MS / 1000),
    },
  });
  const memory = new Memory(prover.backend.pid);
  try {
    // The first request also makes connections and fetches the issuer's keys, so it does not count.
    await measureTime(prover.url, issuer);
    lines.length = 0;
    const singleTimes: number[] = [];
    for (let request = 0; request < requests; request++)
      singleTimes.push(await measureTime(prover.url, issuer));
    const share = computeShares(lines, singleTimes);
    const start = performance.now();
    const concurrentTimes = await askAtOnce(prover.url, issuer, requests);
    const minutes = (performance.now() - start) / 60_000;
    return {
      latency: {
        p50: roundToThreeDigits(quantile(singleTimes, 0.5)),
        p99: roundToThreeDigits(quantile(singleTimes, 0.99)),
        max: roundToThreeDigits(Math.max(...singleTimes)),
        'requests a minute': roundToThreeDigits(requests / minutes),
        'p50 at once': roundToThreeDigits(quantile(concurrentTimes, 0.5)),
      },
      memoryMegabytes: memory.peaks(),
      share,
    };
  } finally {
    memory.stop();
    await prover.close();
    await issuer.close();
  }
}

/** Measures the seconds until a proof for a new user. */
async function measureTime(url: string, issuer: DevelopmentIssuer): Promise<number> {
  const request = await issuer.request();
  const start = performance.now();
  await getProof(url, request, { timeoutMs: TIMEOUT_MS });
  return (performance.now() - start) / 1000;
}

async function askAtOnce(url: string, issuer: DevelopmentIssuer, requests: number): Promise<number[]> {
  const times: number[] = [];
  let remaining = requests;
  const caller = async () => {
    while (remaining-- > 0) times.push(await measureTime(url, issuer));
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return times;
}

function computeShares(lines: readonly Line[], seconds: readonly number[]): Record<string, number> {
  const total = 1000 * seconds.reduce((sum, part) => sum + part, 0);
  const sum = (part: (line: Line) => number | undefined) =>
    lines.reduce((all, line) => all + (part(line) ?? 0), 0);
  const parts = {
    witness: sum(({ witness_ms }) => witness_ms),
    engine: sum(({ engine_ms }) => engine_ms),
    'checks of the token': sum(({ ms }) => ms && (ms['verify'] ?? 0) + (ms['input'] ?? 0)),
    'check of the proof': sum(({ ms }) => ms?.['check']),
  };
  const remainder = total - Object.values(parts).reduce((sum, part) => sum + part, 0);
  const percent = Object.entries({ ...parts, 'the rest': remainder }).map(
    ([name, ms]) => [name, roundToThreeDigits((100 * ms) / total)] as const,
  );
  return Object.fromEntries(percent);
}

/** Samples the resident memory of the backend, its engine, its witness generators, and this process. */
class Memory {
  readonly #peaks = new Map<string, number>();
  readonly #backend: number;
  readonly #timer: NodeJS.Timeout;

  constructor(backend: number) {
    this.#backend = backend;
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  peaks(): Record<string, number> {
    return Object.fromEntries(this.#peaks);
  }

  #sample(): void {
    // The engine is started first. All later children are pipelines of witness generators.
    const [engine = 0, ...generators] = readChildren(this.#backend);
    const parts = {
      'front end, with this client': process.memoryUsage.rss() / 2 ** 20,
      backend: readMegabytes([this.#backend]),
      engine: readMegabytes([engine]),
      'witness generator': readMegabytes(generators.flatMap(withDescendants)),
    };
    const all = Object.values(parts).reduce((sum, part) => sum + part, 0);
    for (const [name, megabytes] of Object.entries({ ...parts, 'all at once': all })) {
      this.#peaks.set(name, Math.max(this.#peaks.get(name) ?? 0, Math.round(megabytes)));
    }
  }
}

function withDescendants(pid: number): number[] {
  return [pid, ...readChildren(pid).flatMap(withDescendants)];
}

function readChildren(pid: number): number[] {
  const children = unlessEnded(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')) ?? '';
  return children.split(' ').filter(Boolean).map(Number);
}

function readMegabytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (unlessEnded(() => residentMegabytes(pid)) ?? 0), 0);
}

/** Reads a value of a process; undefined if the process has ended. */
function unlessEnded<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Returns the smallest value that at least this share of the values does not exceed. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] as number;
}

const roundToThreeDigits = (value: number): number => Number(value.toPrecision(3));

if (import.meta.main) await runAsProcess(main);
