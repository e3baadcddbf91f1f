/**
 * Runs programs in the background. Each has its own record, so that it can be restarted and stopped without
 * any effect on other processes.
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { ParentError } from './errors.ts';

export interface Service {
  /** Name of the service, its record and its log. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const ServiceRecord = v.strictObject({
  pid: v.pipe(v.number(), v.safeInteger(), v.minValue(2)),
  /**
   * Start of the process in ticks since the machine's boot. A process id may be reused, but is unique
   * together with its start.
   */
  startedAt: v.string(),
  command: v.array(v.string()),
});
type ServiceRecord = v.InferOutput<typeof ServiceRecord>;

const STOP_MS = 5000;
const SETTLE_MS = 300;

/**
 * Returns the folder for the state of this host: `SUI_ENCLAVE_STATE`, or by default a folder in the user's
 * folder for the state of programs (XDG Base Directory Specification).
 */
export function stateBase(env: Environment): string {
  const base = env['XDG_STATE_HOME'] || join(homedir(), '.local/state');
  return env['SUI_ENCLAVE_STATE'] || join(base, 'sui-enclave');
}

/**
 * Returns the folder for the state of one enclave, by its name.
 *
 * @param name an `enclaveName` of values.ts, which can be the name of a folder
 */
export function stateFolder(env: Environment, name: string): string {
  const dir = join(stateBase(env), name);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return dir;
}

/**
 * Starts the services that do not run, and replaces services that run with another command.
 *
 * @returns for each service, whether it was started or ran already
 * @throws ParentError: PROGRAM_FAILED, naming a service that can't be started or ends immediately. The other
 *   services keep running
 */
export async function ensureRunning(
  env: Environment,
  dir: string,
  services: readonly Service[],
): Promise<('started' | 'running')[]> {
  const started = new Map<string, ServiceRecord>();
  for (const { name, command } of services) {
    const record = readRecord(dir, name);
    if (record && isAlive(record)) {
      if (JSON.stringify(record.command) === JSON.stringify(command)) continue;
      await stop(record);
    }
    started.set(name, await start(env, dir, { name, command }));
  }
  // A program whose port is in use ends immediately.
  if (started.size > 0) await new Promise((done) => setTimeout(done, SETTLE_MS));
  const alive = [...started].filter(([, record]) => isAlive(record));
  for (const [name, record] of alive) {
    writeFileSync(join(dir, `${name}.json`), JSON.stringify(record), { mode: 0o600 });
  }
  const ended = [...started].find(([, record]) => !isAlive(record));
  if (ended)
    throw new ParentError(
      'PROGRAM_FAILED',
      `${ended[0]} ended immediately: see ${join(dir, `${ended[0]}.log`)}`,
    );
  return services.map(({ name }) => (started.has(name) ? 'started' : 'running'));
}

async function start(env: Environment, dir: string, { name, command }: Service): Promise<ServiceRecord> {
  const log = openSync(join(dir, `${name}.log`), 'a', 0o600);
  const [program, ...args] = command;
  const child = spawn(program, args, { env, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ParentError('PROGRAM_FAILED', `${program} can't be started: ${error.code}`)),
    );
  });
  child.unref();
  const pid = child.pid as number;
  // The start is empty if the process has ended already, so that it matches no process.
  return { pid, startedAt: readStart(pid) ?? '', command: [...command] };
}

/** Requires that services run. @throws ParentError: PROGRAM_FAILED, for a service that has ended */
export function requireRunning(dir: string, names: readonly string[]): void {
  for (const name of names) {
    const record = readRecord(dir, name);
    if (!record || !isAlive(record)) {
      throw new ParentError('PROGRAM_FAILED', `${name} has ended: see ${join(dir, `${name}.log`)}`);
    }
  }
}

/** Sends a signal to a service that has a record here. @returns whether it runs */
export function signalService(dir: string, name: string, signal: NodeJS.Signals): boolean {
  const record = readRecord(dir, name);
  if (!record || !isAlive(record)) return false;
  send(record, signal);
  return true;
}

/** Stops every service that has a record here, and nothing else. @returns their names */
export async function stopServices(dir: string): Promise<string[]> {
  const stopped: string[] = [];
  for (const file of readdirSync(dir).filter((name) => name.endsWith('.json'))) {
    const name = file.slice(0, -'.json'.length);
    const record = readRecord(dir, name);
    // A file that is not a record stays.
    if (!record) continue;
    if (isAlive(record)) {
      await stop(record);
      stopped.push(name);
    }
    rmSync(join(dir, file));
  }
  return stopped.sort();
}

function readRecord(dir: string, name: string): ServiceRecord | undefined {
  try {
    const record: unknown = JSON.parse(readFileSync(join(dir, `${name}.json`), 'utf8'));
    return v.is(ServiceRecord, record) ? record : undefined;
  } catch {
    return undefined;
  }
}

function isAlive({ pid, startedAt }: ServiceRecord): boolean {
  return readStart(pid) === startedAt;
}

/**
 * Reads the start of a process from field 22 of /proc/PID/stat: see proc(5). The fields are counted after the
 * name in parentheses, since the name may contain spaces. Returns undefined for a process that has ended.
 */
function readStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

async function stop(record: ServiceRecord): Promise<void> {
  send(record, 'SIGTERM');
  for (let waitedMs = 0; isAlive(record); waitedMs += 50) {
    if (waitedMs >= STOP_MS) send(record, 'SIGKILL');
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Sends a signal to the whole process group of a service. */
function send({ pid }: ServiceRecord, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // The service has ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
