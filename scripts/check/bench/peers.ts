/**
 * Sends the same requests to other servers for enclaves (peers), if they are present, as to our server. Peers
 * would call the real weather service, which a benchmark must not reach, so proxy.ts sends their requests to
 * the fake. If a peer
 * ignores the proxy or does not trust its authority, its row says that the peer has no answer to
 * /process_data.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEV_API_KEY } from '../../../src/testing/weather_api.ts';
import { COLD, type Load, type LoadRequest, PONG, WARM } from './load.ts';
import { median, residentMegabytes } from './measure.ts';
import { findFreePort, isOpen, START_MS, waitForPort } from './ports.ts';
import { type Server, startServer, stop } from './servers.ts';

/** Port on which Nautilus always listens. */
const FIXED_PORT = 3000;
const TURNS = 3;
const AMOUNT = { connections: 32, seconds: 1 };

const REQUESTS = { 'GET /': PONG, '/process_data, warm': WARM, '/process_data, cold': COLD };

type Env = Readonly<Record<string, string | undefined>>;

export interface PeerResult {
  /** Reason why the peer was not measured. */
  readonly skipped?: string;
  readonly asked?: Readonly<Record<string, Rates | { readonly skipped: string }>>;
  /** Resident memory after the load. */
  readonly megabytes?: number;
}

/** Median rates in requests per second. */
interface Rates {
  readonly theirs: number;
  readonly ours: number;
}

interface Context {
  readonly load: Load;
  readonly ours: Pick<Server, 'origin'>;
  /** Environment variables that keep a peer from the network. */
  readonly network: Env;
  readonly fixedPort: number;
}

/** Measures the peers that `env` names. @param fixedPort the port of Nautilus; tests pass another port */
export async function benchPeers(
  load: Load,
  { weather: ours, fake }: Record<'weather' | 'fake', Pick<Server, 'origin'>>,
  env: Env,
  fixedPort = FIXED_PORT,
): Promise<Record<string, PeerResult>> {
  const { NAUTILUS_BIN: bin, NAUTILUS_TS_DIR: folder } = env;
  const bench = (command: readonly string[], cwd?: string) =>
    withProxy(fake.origin, (network) => benchPeer({ load, ours, network, fixedPort }, command, cwd));
  return {
    Nautilus: bin ? await bench([bin]) : { skipped: 'NAUTILUS_BIN is not set' },
    'nautilus-ts': folder
      ? await bench(['npm', '--prefix', folder, 'start'], folder)
      : { skipped: 'NAUTILUS_TS_DIR is not set' },
  };
}

/**
 * Calls `use` with environment variables that make a program send its requests to the proxy, and trust the
 * proxy's authority.
 */
async function withProxy<T>(fake: string, use: (network: Env) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-peers-'));
  const authority = join(folder, 'ca.pem');
  const proxy = await startServer('./proxy.ts', { FAKE: fake, AUTHORITY: authority });
  const { origin } = proxy;
  try {
    return await use({
      HTTPS_PROXY: origin,
      https_proxy: origin,
      HTTP_PROXY: origin,
      http_proxy: origin,
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      NODE_USE_ENV_PROXY: '1',
      SSL_CERT_FILE: authority,
      NODE_EXTRA_CA_CERTS: authority,
    });
  } finally {
    stop([proxy]);
    rmSync(folder, { recursive: true });
  }
}

async function benchPeer(
  { load, ours, network, fixedPort }: Context,
  [program = '', ...args]: readonly string[],
  cwd?: string,
): Promise<PeerResult> {
  if (await isOpen(fixedPort)) return { skipped: `port ${fixedPort} is taken` };
  const port = await findFreePort();
  const child = spawn(program, args, {
    ...(cwd !== undefined && { cwd }),
    // The server gets a process group of its own, since npm starts it as a child.
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, ...network, PORT: String(port), HOST: '127.0.0.1', API_KEY: DEV_API_KEY },
  });
  try {
    const startFailure = once(child, 'error').then(
      ([error]) => `it can't be started: ${(error as Error).message}`,
    );
    const started = await Promise.race([waitForPort(child, [port, fixedPort]), startFailure]);
    if (typeof started === 'string') return { skipped: started };
    return await measure(load, ours, { origin: `http://127.0.0.1:${started}`, child });
  } finally {
    stopGroup(child);
  }
}

async function measure(load: Load, ours: Pick<Server, 'origin'>, peer: Server): Promise<PeerResult> {
  const ratesByRequest: Record<string, Rates | { skipped: string }> = {};
  for (const [name, request] of Object.entries(REQUESTS)) {
    ratesByRequest[name] = await compare(load, ours, peer, request);
  }
  return { asked: ratesByRequest, megabytes: sumMegabytes(peer.child.pid) };
}

/** Adds up the memory of a group's processes that have no child in the group: npm and its shell only wait. */
function sumMegabytes(group: number | undefined): number {
  const members = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(readProcess)
    .filter((member) => member?.group === group);
  const parents = members.map((member) => member?.parent);
  const leaves = members.filter((member) => !parents.includes(member?.pid));
  return leaves.reduce((sum, member) => sum + residentMegabytes(member?.pid), 0);
}

/** Reads the status of a process; undefined if it has ended. */
function readProcess(pid: string): { pid: number; parent: number; group: number } | undefined {
  try {
    // After the name in brackets, the state is field 3, parent and group are fields 4 and 5 (proc(5)).
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return { pid: Number(pid), parent: Number(fields[1]), group: Number(fields[2]) };
  } catch {
    return undefined;
  }
}

async function compare(
  load: Load,
  ours: Pick<Server, 'origin'>,
  peer: Server,
  request: LoadRequest,
): Promise<Rates | { skipped: string }> {
  const status = await requestStatus(peer, request);
  if (status !== 200) return { skipped: `its answer is ${status}` };
  const turns: Rates[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const theirs = (await load(peer.origin, request, AMOUNT)).perSecond;
    turns.push({ theirs, ours: (await load(ours.origin, request, AMOUNT)).perSecond });
  }
  return {
    theirs: median(turns.map(({ theirs }) => theirs)),
    ours: median(turns.map(({ ours }) => ours)),
  };
}

async function requestStatus({ origin }: Server, { path, bodies }: LoadRequest): Promise<number | string> {
  const [body] = bodies ?? [];
  const post = body !== undefined && {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  };
  const options = { ...post, signal: AbortSignal.timeout(START_MS) };
  return await fetch(origin + path, options).then(
    ({ status }) => status,
    (error: Error) => error.name,
  );
}

/** Ends the peer and all processes that it has started. */
function stopGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  process.kill(-pid, 'SIGKILL');
}
