/**
 * Runs a machine with systemd as PID 1, in namespaces on an overlay of this machine's files. See machine.sh.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./machine.sh', import.meta.url));
const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
const SYSTEMD = '/lib/systemd/systemd';
/** Time limit of a boot, of a shutdown, and of a command in the machine, in milliseconds. */
const LIMIT_MS = 60_000;
/**
 * Environment of a command in the machine. With the cache, Node compiles this project's modules only once.
 */
const ENVIRONMENT = {
  PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  SYSTEMD_PAGER: '',
  LC_ALL: 'C.UTF-8',
  NODE_COMPILE_CACHE: '/var/cache/sui-enclave-tests',
};

/** Returns the reason why no such machine can run here, or undefined if it can. */
export function findObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return 'it needs root';
  if (!existsSync(SYSTEMD)) return "systemd is not installed (Debian's package systemd)";
  if (!existsSync('/usr/bin/curl')) return "curl is not installed (Debian's package curl)";
  const probe = ['--pid', '--fork', '--mount', '--cgroup', '--net', '--ipc', '--uts', 'sh', '-c'];
  const dir = mkdtempSync(join(tmpdir(), 'units-'));
  const mounts = [
    `mount -t tmpfs tmpfs ${dir} && mkdir ${dir}/u ${dir}/w ${dir}/r ${dir}/c`,
    `mount -t overlay overlay -o lowerdir=/,upperdir=${dir}/u,workdir=${dir}/w ${dir}/r`,
    `mount -t cgroup2 cgroup2 ${dir}/c && mkdir ${dir}/c/${process.pid} && rmdir ${dir}/c/${process.pid}`,
  ];
  const { status, stderr } = spawnSync('unshare', [...probe, mounts.join(' && ')], { encoding: 'utf8' });
  rmdirSync(dir);
  return status === 0
    ? undefined
    : `this machine allows no namespaces, overlays or control groups: ${stderr?.trim()}`;
}

export interface Output {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Machine {
  readonly #dir = mkdtempSync(join(tmpdir(), 'units-'));
  readonly #holder: ChildProcess;
  readonly #holding: Promise<string>;
  #unshare: ChildProcess | undefined;
  #init: number | undefined;

  constructor() {
    this.#holder = spawn(
      'unshare',
      ['--mount', '--kill-child', '--fork', 'sh', SCRIPT, 'hold', this.#dir, REPOSITORY],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    const { stdout } = this.#holder;
    this.#holding = new Promise((resolve, reject) => {
      stdout?.once('data', (data) => resolve(String(data).trim().replace('holds ', '')));
      stdout?.once('end', () => reject(new Error('the overlay could not be mounted')));
    });
  }

  /** Returns the name of the control group of the machine's processes. */
  async groupName(): Promise<string> {
    return basename(await this.#holding);
  }

  /** Root folder of the machine's files, which stay from one boot to the next. */
  get #root(): string {
    return `/proc/${readChildren(this.#holder)[0]}/root${this.#dir}/root`;
  }

  /** Returns the path on this machine of one of the started machine's files. */
  path(file: string): string {
    return join(this.#root, file);
  }

  /** Starts systemd, and waits until it has started the enabled units. */
  async boot(): Promise<void> {
    const cgroup = await this.#holding;
    mkdirSync(join(REPOSITORY, 'build'), { recursive: true });
    const log = openSync(join(REPOSITORY, 'build/units.log'), 'a');
    const holder = String(readChildren(this.#holder)[0]);
    this.#unshare = spawn(
      'nsenter',
      ['--target', holder, '--mount', 'sh', SCRIPT, 'enter', this.#dir, REPOSITORY, cgroup],
      { stdio: ['ignore', log, log] },
    );
    closeSync(log);
    const process = this.#unshare;
    this.#init = undefined;
    await until('systemd runs', () => {
      const [init] = readChildren(process);
      const isSystemd = init !== undefined && readFileSync(`/proc/${init}/comm`, 'utf8') === 'systemd\n';
      if (isSystemd) this.#init = init;
      return isSystemd && /running|degraded/.test(this.run('systemctl', 'is-system-running').stdout);
    });
  }

  /** Runs a program in the machine, as root. */
  run(...command: [string, ...string[]]): Output {
    const enter = ['--pid', '--mount', '--cgroup', '--net', '--ipc', '--uts'];
    const { status, stdout, stderr } = spawnSync(
      'nsenter',
      ['--target', String(this.#init), ...enter, ...command],
      {
        encoding: 'utf8',
        timeout: LIMIT_MS,
        env: ENVIRONMENT,
      },
    );
    return { status, stdout, stderr };
  }

  /** Runs a program in the machine. @throws an error with its output, if the program fails */
  mustRun(...command: [string, ...string[]]): string {
    const { status, stdout, stderr } = this.run(...command);
    if (status !== 0) throw new Error(`${command.join(' ')} failed (${status}): ${stderr}${stdout}`);
    return stdout;
  }

  /** Stops every unit in its order, as a reboot does. */
  async powerOff(): Promise<void> {
    this.run('systemctl', 'poweroff');
    await this.#waitForEnd();
  }

  /** Ends all processes at once, as a loss of power does. */
  async crash(): Promise<void> {
    this.#unshare?.kill('SIGKILL');
    await this.#waitForEnd();
  }

  async #waitForEnd(): Promise<void> {
    const { exitCode, signalCode } = this.#unshare ?? {};
    if (this.#unshare && exitCode === null && signalCode === null) {
      await Promise.race([once(this.#unshare, 'exit'), sleep(LIMIT_MS, undefined, { ref: false })]);
    }
    this.#unshare = undefined;
  }

  /** Ends all processes, and removes all files. */
  async close(): Promise<void> {
    await this.crash();
    const ended = once(this.#holder, 'exit');
    this.#holder.stdin?.end();
    await ended;
    rmdirSync(this.#dir);
  }
}

/** Returns the ids of the processes that a process has started. */
function readChildren({ pid }: ChildProcess): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/**
 * Waits until a condition holds.
 *
 * @param condition its description, for the error
 * @throws an error after `limitMs`
 */
export async function until(condition: string, holds: () => boolean, limitMs = LIMIT_MS): Promise<void> {
  const end = performance.now() + limitMs;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${condition}`);
    // Each check starts processes, and other tests share the processors.
    await sleep(150);
  }
}
