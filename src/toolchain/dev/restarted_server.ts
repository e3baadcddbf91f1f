/**
 * Runs `serve.ts`, and restarts it on the same port when a file that it has loaded changes. If a restart
 * fails, waits for the next change.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { relative, sep } from 'node:path';
import { type ForkOptions, forkServer, type ListeningMessage } from './fork_server.ts';
import { WatchedFiles } from './watched_files.ts';

const LOADED_FILES = new URL('loaded_files.ts', import.meta.url).href;
/** Time in milliseconds in which several events count as one save. */
const SETTLE_MS = 100;
/** Time for requests in flight to finish, in milliseconds. */
const STOP_MS = 2000;

export interface RestartedServerOptions {
  /** Root of the project. Only its files are watched. */
  readonly root: string;
  /** Variables that are added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Name of the server in log lines. Default: "The server". */
  readonly name?: string;
  /** Part of the output that is printed: see `forkServer`. */
  readonly output?: ForkOptions['output'];
  readonly log: (line: string) => void;
  /** Called after each start. */
  readonly onListening: (message: ListeningMessage) => void;
  /** Called if the first start fails. */
  readonly onFailedStart: (exitCode: number) => void;
}

/** The running server, and the values that a restart must keep. */
export class RestartedServer {
  /**
   * Seed of the signing key under ATTEST=emulated, so that a registered key stays registered after a restart.
   * The seed lasts as long as this process, and is in no file or environment.
   */
  #seed = randomBytes(32);
  readonly #files = new WatchedFiles((file) => this.#onChange(file));
  readonly #options: RestartedServerOptions;
  #server: ChildProcess;
  /** Port of the server. It stays the same after restarts, even if the system chose it for PORT=0. */
  #port: string | undefined;
  #restarting: Promise<void> | undefined;
  #hasChangedAgain = false;
  /** File that changed before the first server listened; undefined if none did. */
  #earlyChange: string | undefined;
  #isEnding = false;

  constructor(options: RestartedServerOptions) {
    this.#options = options;
    this.#server = this.#start();
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#isEnding = true;
    this.#files.close();
    await this.#restarting;
    await this.#stop(signal);
  }

  /** Restarts the server with another signing key, as when an enclave restarts. */
  restartWithNewKey(): void {
    this.#seed = randomBytes(32);
    this.#hasChangedAgain = true;
    this.#restarting ??= this.#restart();
  }

  /** Makes the server run each task of its application now. */
  runTasks(): void {
    // The callback ignores the error if the server has ended in the meantime.
    this.#server.send({ run: 'tasks' }, () => {});
  }

  #start(): ChildProcess {
    this.#files.beginRound();
    const { env, output = 'all', root, onListening, onFailedStart } = this.#options;
    const options = {
      env: { ...process.env, ...env, ...(this.#port !== undefined && { PORT: this.#port }) },
      execArgv: [...process.execArgv, '--import', LOADED_FILES],
      seed: this.#seed,
      output,
    };
    const child = forkServer(options, (message, server) => {
      if (server !== this.#server) return;
      if ('file' in message) {
        if (message.file.startsWith(`${root}${sep}`)) this.#files.add(message.file);
        return;
      }
      this.#port = message.port;
      this.#files.finishRound();
      onListening(message);
      // The server may have loaded an older content of the file.
      if (this.#earlyChange !== undefined) this.#onChange(this.#earlyChange);
    });
    child.on('exit', (code, signal) => {
      if (child !== this.#server || this.#restarting || this.#isEnding) return;
      if (this.#port === undefined) return onFailedStart(code ?? 1);
      this.#log(`ended (${signal ?? `exit code ${code}`}). It starts again when one of its files changes.`);
    });
    return child;
  }

  #log(predicate: string): void {
    this.#options.log(`${this.#options.name ?? 'The server'} ${predicate}`);
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#server.exitCode !== null || this.#server.signalCode !== null) return;
    const ended = once(this.#server, 'exit');
    this.#server.kill(signal);
    await ended;
  }

  async #restart(): Promise<void> {
    do {
      this.#hasChangedAgain = false;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const killTimer = setTimeout(() => this.#server.kill('SIGKILL'), STOP_MS);
      await this.#stop('SIGTERM');
      clearTimeout(killTimer);
    } while (this.#hasChangedAgain);
    this.#server = this.#start();
    this.#restarting = undefined;
  }

  #onChange(file: string): void {
    if (this.#isEnding) return;
    // Before the first server listens, there is no port to keep, and a failure ends the start.
    this.#earlyChange = this.#port === undefined ? file : undefined;
    if (this.#earlyChange !== undefined) return;
    this.#hasChangedAgain = true;
    if (this.#restarting) return;
    this.#options.log(`\n${relative(this.#options.root, file)} has changed: restarting.`);
    this.#restarting = this.#restart();
  }
}
