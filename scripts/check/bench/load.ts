/** Generates load with `wrk` on one thread if it is installed, otherwise with autocannon in this process. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';

/** A kind of request. */
export interface LoadRequest {
  /** Path on the server, with its query. */
  readonly path: string;
  /**
   * JSON bodies to POST in turn. `{n}` in a body becomes a string that no other request has. Without bodies,
   * requests are GET.
   */
  readonly bodies?: readonly string[];
}

export const PONG: LoadRequest = { path: '/' };
export const WARM: LoadRequest = {
  path: '/process_data',
  bodies: [JSON.stringify({ payload: { location: 'San Francisco' } })],
};

/** Load in which each request asks for another place. */
export const COLD: LoadRequest = {
  path: '/process_data',
  bodies: [JSON.stringify({ payload: { location: 'place {n}' } })],
};

export interface Amount {
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p99Ms: number;
}

/** Sends requests for the seconds of `amount`. @throws Error if a request is refused or fails */
export type Load = (origin: string, request: LoadRequest, amount: Amount) => Promise<LoadResult>;

const run = promisify(execFile);
const JSON_HEADERS = { 'content-type': 'application/json' };
/**
 * Number of loads of this process so far. Together with the number of a request, it replaces `{n}`, so that
 * bodies differ between loads and processes.
 */
let loads = 0;
const nextLoad = () => `${process.pid} ${Date.now()} ${loads++}`;

/** Returns the load program of this machine, and its name for the table. */
export function findLoad(): { name: string; load: Load } {
  const hasWrk = spawnSync('wrk', ['--version']).error === undefined;
  return hasWrk ? { name: 'wrk -t1', load: loadByWrk } : { name: 'autocannon', load: loadByAutocannon };
}

async function loadByWrk(
  origin: string,
  request: LoadRequest,
  { connections, seconds }: Amount,
): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  try {
    const script = join(folder, 'request.lua');
    writeFileSync(script, writeLuaScript(request, nextLoad()));
    const args = [
      '-t1',
      `-c${connections}`,
      `-d${seconds}s`,
      '--latency',
      '-s',
      script,
      origin + request.path,
    ];
    return parseWrk((await run('wrk', args)).stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns wrk's script. It is empty for a request that never changes, which wrk then creates only once. */
export function writeLuaScript({ bodies }: LoadRequest, load: string): string {
  if (!bodies) return '';
  const list = bodies.map((body) => `[==[${body}]==]`).join(', ');
  const head = `wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n`;
  if (bodies.length === 1 && !bodies[0]?.includes('{n}')) return `${head}wrk.body = ${list}\n`;
  return `${head}local bodies, n = { ${list} }, 0
request = function()
  n = n + 1
  local body = bodies[n % #bodies + 1]
  local at = string.find(body, "{n}", 1, true)
  if at then body = string.sub(body, 1, at - 1) .. "${load} " .. n .. string.sub(body, at + 3) end
  return wrk.format(nil, nil, nil, body)
end
`;
}

const MILLISECONDS = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

/** Parses the report of `wrk --latency`. @throws Error if a request was refused or failed */
export function parseWrk(report: string): LoadResult {
  const failures = /Non-2xx[^\n]*|Socket errors:[^\n]*/.exec(report)?.[0];
  if (failures !== undefined) throw new Error(`wrk: ${failures.trim()}`);
  const [, requests] = /(\d+) requests in/.exec(report) ?? [];
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(report) ?? [];
  const [, p99, unit] = /99%\s+([\d.]+)(us|ms|s|m)\b/.exec(report) ?? [];
  if (perSecond === undefined || p99 === undefined || !(Number(requests) > 0)) {
    throw new Error(`wrk reported no answers: ${report}`);
  }
  const p99Ms = Number(p99) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  return { requests: Number(requests), perSecond: Number(perSecond), p99Ms };
}

/** @throws Error if a request was refused or failed */
export async function loadByAutocannon(
  origin: string,
  request: LoadRequest,
  amount: Amount,
): Promise<LoadResult> {
  const { connections, seconds } = amount;
  const url = origin + request.path;
  const measured = await autocannon({
    url,
    connections,
    duration: seconds,
    ...createLoadOptions(request, nextLoad()),
  });
  const { non2xx, errors, duration, latency } = measured;
  if (non2xx > 0 || errors > 0) throw new Error(`autocannon: ${non2xx} refused, ${errors} failed`);
  return { requests: measured['2xx'], perSecond: measured['2xx'] / duration, p99Ms: latency.p99 };
}

/** Creates the options. As with wrk, a request that never changes is created only once. */
function createLoadOptions({ bodies }: LoadRequest, load: string): Partial<autocannon.Options> {
  if (!bodies) return {};
  const [body = ''] = bodies;
  const post = { method: 'POST', headers: JSON_HEADERS } as const;
  if (bodies.length === 1 && !body.includes('{n}')) return { ...post, body };
  let n = 0;
  const setupRequest = (request: autocannon.Request) => {
    n += 1;
    return { ...request, body: bodies[n % bodies.length]?.replace('{n}', () => `${load} ${n}`) ?? '' };
  };
  return { ...post, requests: [{ setupRequest }] };
}
