/**
 * Programs that are left running in the background, each with a record of its own, so that they can be started
 * again and stopped without touching anything else.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { Usage } from '../command.ts';
import { ProgramFailed } from './errors.ts';

export interface Service {
  /** Also the name of its record and its log. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const ServiceRecord = v.strictObject({
  pid: v.pipe(v.number(), v.safeInteger(), v.minValue(2)),
  /** In ticks since the machine's boot: a process number may be used again, with its start it is unique. */
  startedAt: v.string(),
  command: v.array(v.string()),
});
type ServiceRecord = v.InferOutput<typeof ServiceRecord>;

const STOP_MS = 5000;

/**
 * Of one enclave, by its name: below `SUI_ENCLAVE_STATE`, else where programs keep their state.
 *
 * @throws Usage for a name that is no name of a folder
 */
export function stateFolder(env: NodeJS.ProcessEnv, name: string): string {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) {
    throw new Usage('--name must be letters, digits, dots and dashes, at most 64');
  }
  const base = env['XDG_STATE_HOME'] || join(homedir(), '.local/state');
  const dir = join(env['SUI_ENCLAVE_STATE'] || join(base, 'sui-enclave'), name);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return dir;
}

/** Starts a service that does not run as it should, and replaces one that runs with another command. */
export async function ensureRunning(dir: string, { name, command }: Service): Promise<'started' | 'running'> {
  const record = readRecord(dir, name);
  if (record && isAlive(record)) {
    if (JSON.stringify(record.command) === JSON.stringify(command)) return 'running';
    await stop(record);
  }
  const log = openSync(join(dir, `${name}.log`), 'a', 0o600);
  const [program, ...args] = command;
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log, log] });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ProgramFailed(`${program} can't be started: ${error.code}`)),
    );
  });
  const pid = child.pid as number;
  const startedAt = startOf(pid);
  // A port that is taken shows at once.
  await new Promise((done) => setTimeout(done, 300));
  if (startedAt === undefined || startOf(pid) !== startedAt) {
    throw new ProgramFailed(`${name} ended at once: see ${join(dir, `${name}.log`)}`);
  }
  writeFileSync(join(dir, `${name}.json`), JSON.stringify({ pid, startedAt, command }), { mode: 0o600 });
  child.unref();
  return 'started';
}

/** @throws ProgramFailed for a service that has ended since it was started */
export function requireRunning(dir: string, services: readonly Service[]): void {
  for (const { name } of services) {
    const record = readRecord(dir, name);
    if (!record || !isAlive(record)) {
      throw new ProgramFailed(`${name} has ended: see ${join(dir, `${name}.log`)}`);
    }
  }
}

/** Ends every service that was started here, and nothing else. @returns their names */
export async function stopServices(dir: string): Promise<string[]> {
  const stopped: string[] = [];
  for (const file of readdirSync(dir).filter((each) => each.endsWith('.json'))) {
    const name = file.slice(0, -'.json'.length);
    const record = readRecord(dir, name);
    // Somebody else's file.
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
  return startOf(pid) === startedAt;
}

/** proc(5): field 22, counted after the name in parentheses, which may hold anything. Undefined for a process that has ended. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** The whole group: socat has a process for each connection. */
async function stop(record: ServiceRecord): Promise<void> {
  signal(record, 'SIGTERM');
  for (let waited = 0; isAlive(record); waited += 50) {
    if (waited >= STOP_MS) signal(record, 'SIGKILL');
    await new Promise((done) => setTimeout(done, 50));
  }
}

function signal({ pid }: ServiceRecord, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch (error) {
    // It has ended since it was looked at.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
