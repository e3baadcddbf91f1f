/** Starts the processes of the soak, and measures them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, residentMegabytes } from '../../../scripts/check/bench/measure.ts';

/** A process that listens on loopback. */
export class Part {
  readonly origin: string;
  readonly child: ChildProcess;
  /** Number of failed requests in its log, by code. */
  readonly logged: Map<string, number>;
  #isEnded = false;

  private constructor(origin: string, child: ChildProcess, logged: Map<string, number>) {
    this.origin = origin;
    this.child = child;
    this.logged = logged;
    child.once('exit', () => {
      this.#isEnded = true;
    });
  }

  /**
   * Starts a process, and waits until it listens.
   *
   * @param script name of a file beside this one. Its process sends a message with its origin once it listens
   * @param descriptors the limit on its open files; by default, the limit of this process
   */
  static async start(script: string, env: NodeJS.ProcessEnv, descriptors?: number): Promise<Part> {
    const node = ['--expose-gc', '--max-semi-space-size=8'];
    const limit = ['prlimit', `--nofile=${descriptors}`, process.execPath];
    const [execPath = '', ...execArgv] = [
      ...(descriptors === undefined ? [process.execPath] : limit),
      ...node,
    ];
    const child = fork(fileURLToPath(new URL(script, import.meta.url)), {
      env: { PATH: process.env['PATH'], ...env },
      execPath,
      execArgv,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    const logged = new Map<string, number>();
    if (child.stdout) createInterface(child.stdout).on('line', (line) => countCode(logged, line));
    const ended = once(child, 'exit').then(() => {
      throw new Error(`${script} ended before it listened`);
    });
    ended.catch(() => {});
    const [{ origin }] = (await Promise.race([once(child, 'message'), ended])) as [{ origin: string }];
    return new Part(origin, child, logged);
  }

  /** Whether the process has ended, by itself or by a signal of the soak. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  tell(command: object): void {
    this.child.send(command);
  }

  /** Sends a command, and returns the next message of the process. */
  async ask<Answer>(command: object): Promise<Answer> {
    const answer = once(this.child, 'message');
    this.child.send(command);
    return ((await answer) as [Answer])[0];
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Kills the process, and returns when it has ended. */
  async kill(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }

  /** CPU time so far, in seconds. */
  get cpu(): number {
    return cpuSeconds(this.child.pid);
  }

  /** Measures the sizes that must not grow, after a garbage collection. */
  async measure(): Promise<Sizes> {
    const { heap } = await this.ask<{ heap: number }>({ collect: true });
    return { resident: residentMegabytes(this.child.pid), heap: heap / 1e6, descriptors: this.descriptors };
  }

  get descriptors(): number {
    return readdirSync(`/proc/${this.child.pid}/fd`).length;
  }
}

export interface Sizes {
  /** Resident memory in MiB. */
  readonly resident: number;
  /** Heap in MB after a garbage collection. An entry that a map never drops would show here. */
  readonly heap: number;
  readonly descriptors: number;
}

/**
 * Counts the failed requests of a line of the log: one by its code, or a number that was refused with
 * OVERLOADED.
 */
function countCode(counts: Map<string, number>, line: string): void {
  const [, code] = /"status":\d+,"code":"([A-Z0-9_]+)"/.exec(line) ?? [];
  const [, refused, requests] = /"code":"(OVERLOADED)","requests":(\d+)/.exec(line) ?? [];
  if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  if (refused !== undefined) counts.set(refused, (counts.get(refused) ?? 0) + Number(requests));
}
