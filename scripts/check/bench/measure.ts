/** Measures wall time, CPU time and peak memory of a process and its threads (Linux). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

export interface Cost {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  readonly peakMegabytes: number;
}

/** Ticks per second in /proc/<pid>/stat. */
const TICKS = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
const SAMPLE_MS = 10;

/**
 * Runs a program without a shell. The last sample of CPU time and memory is about 10 ms older than its end.
 */
export async function measureProcess(
  program: string,
  args: readonly string[],
): Promise<Cost & { stdout: string }> {
  const start = performance.now();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  let last = { cpuSeconds: 0, peakMegabytes: 0 };
  const timer = setInterval(() => {
    last = sample(child) ?? last;
  }, SAMPLE_MS);
  const [code] = await once(child, 'close').finally(() => clearInterval(timer));
  const wallSeconds = (performance.now() - start) / 1000;
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${output.stderr.trim()}`);
  return { wallSeconds, ...last, stdout: output.stdout };
}

function sample({ pid }: ChildProcess): { cpuSeconds: number; peakMegabytes: number } | undefined {
  try {
    return { cpuSeconds: cpuSeconds(pid), peakMegabytes: statusMegabytes(pid, 'VmHWM') };
  } catch {
    // The process has ended already.
    return undefined;
  }
}

/** Returns the user and system time of a process and its threads so far, in steps of a tick (10 ms). */
export function cpuSeconds(pid: number | undefined): number {
  // After the name in brackets, state is field 3, and user and system time are fields 14 and 15 (proc(5)).
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Returns the resident memory of a process, in megabytes. */
export function residentMegabytes(pid: number | undefined): number {
  return statusMegabytes(pid, 'VmRSS');
}

function statusMegabytes(pid: number | undefined, field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(kilobytes) / 1024;
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] as number;
