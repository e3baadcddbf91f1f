/**
 * `sui-enclave dev`, or `make dev`: runs `serve.ts`, and restarts it on the same port when a file that it has
 * loaded changes. A start that fails ends this process too; a restart that fails waits for the next change.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { command, type Io, runAsProcess } from 'sui-enclave-cli/command';
import { endOnSignal } from 'sui-enclave-service/signals';
import { findProject } from '../project.ts';
import { consolePort, developmentFiles, startConsole } from './console.ts';
import { forkServer } from './fork_server.ts';
import { WatchedFiles } from './watched_files.ts';

const LOADED_FILES = new URL('loaded_files.ts', import.meta.url).href;
/** One save may be several events. */
const SETTLE_MS = 100;
/** Requests in flight may finish in this time. */
const STOP_MS = 2000;

/** The server that runs, and what must be the same after a restart. */
class RestartedServer {
  /**
   * Seed of the signing key under ATTEST=emulated, so that a registered key stays registered after a restart.
   * It lasts as long as this process, and no file and no environment has it.
   */
  readonly #seed = randomBytes(32);
  readonly #files = new WatchedFiles((file) => this.#onChange(file));
  readonly #io: Pick<Io, 'log'>;
  /** Root of the project: only its files are watched. */
  readonly #root: string;
  readonly #consolePort: number;
  #server: ChildProcess;
  /** The port that the system chose for PORT=0 stays the same. */
  #port: string | undefined;
  #restarting: Promise<void> | undefined;
  #changedMeanwhile = false;
  /** A file that changed before the first server listened. */
  #changedEarly: string | undefined;
  #isEnding = false;
  /** The console, which outlives restarts of the server. */
  #console: { close(): void } | undefined;

  constructor(root: string, io: Pick<Io, 'log'>, port: number) {
    this.#root = root;
    this.#io = io;
    this.#consolePort = port;
    this.#server = this.#start();
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#isEnding = true;
    this.#console?.close();
    this.#files.close();
    await this.#restarting;
    await this.#stop(signal);
  }

  #start(): ChildProcess {
    this.#files.beginRound();
    const options = {
      env: { ...process.env, ...(this.#port !== undefined && { PORT: this.#port }) },
      execArgv: [...process.execArgv, '--import', LOADED_FILES],
      seed: this.#seed,
    };
    const child = forkServer(options, (message, server) => {
      if (server !== this.#server) return;
      if ('file' in message) {
        if (message.file.startsWith(`${this.#root}${sep}`)) this.#files.add(message.file);
        return;
      }
      this.#console ??= this.#showConsole(message.port, message.pcrsName);
      this.#port = message.port;
      this.#files.finishRound();
      // It may have loaded the file as it was before.
      if (this.#changedEarly !== undefined) this.#onChange(this.#changedEarly);
    });
    child.on('exit', (code, signal) => {
      if (child !== this.#server || this.#restarting || this.#isEnding) return;
      if (this.#port === undefined) process.exit(code ?? 1);
      this.#io.log(
        `The server ended (${signal ?? `exit code ${code}`}). It starts again when one of its files changes.`,
      );
    });
    return child;
  }

  #showConsole(port: string, pcrsName: string | undefined): { close(): void } {
    const folder = pathToFileURL(`${resolve(process.env['OUT'] || join(this.#root, 'out'))}/`);
    return startConsole({
      port: this.#consolePort,
      log: (line) => this.#io.log(line),
      link: `#/enclave?url=${encodeURIComponent(`http://127.0.0.1:${port}`)}`,
      development: () => (pcrsName === undefined ? {} : developmentFiles(folder, ['dev-root.pem', pcrsName])),
    });
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#server.exitCode !== null || this.#server.signalCode !== null) return;
    const ended = once(this.#server, 'exit');
    this.#server.kill(signal);
    await ended;
  }

  async #restart(): Promise<void> {
    do {
      this.#changedMeanwhile = false;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const impatient = setTimeout(() => this.#server.kill('SIGKILL'), STOP_MS);
      await this.#stop('SIGTERM');
      clearTimeout(impatient);
    } while (this.#changedMeanwhile);
    this.#server = this.#start();
    this.#restarting = undefined;
  }

  #onChange(file: string): void {
    if (this.#isEnding) return;
    // Before the first server listens, no port has to be kept, and its failure ends this process.
    this.#changedEarly = this.#port === undefined ? file : undefined;
    if (this.#changedEarly !== undefined) return;
    this.#changedMeanwhile = true;
    if (this.#restarting) return;
    this.#io.log(`\n${relative(this.#root, file)} has changed: restarting.`);
    this.#restarting = this.#restart();
  }
}

export const main = command({
  name: 'dev',
  purpose:
    'Starts the server of an application against fakes of the services that it calls, until SIGTERM or Ctrl-C, and\nrestarts it when a file that it has loaded changes.',
  arguments: {},
  options: {},
  notes: `environment:
  APP     the application: in a clone a folder of src/apps (default: weather); elsewhere that of the current folder
  PORT    the server's port (default: 3000)
  ATTEST  emulated: with an emulated NSM, whose root of trust is out/dev-root.pem
  OUT     the folder of that root and of the registers (default: out)
  EMULATED_IMAGE
          which version of the application ATTEST=emulated attests, 1 to 9: each has other registers (default: 1)
  CONSOLE_PORT
          the port of the console, a page to look at the enclave with (default: chosen by the system)
and the settings of the server and of the application

exit codes: 0 ended by a signal; 1 it can't start; 2 invalid command line`,
  run(_, { env, io }) {
    const server = new RestartedServer(findProject().root, io, consolePort(env));
    endOnSignal((signal) => server.end(signal));
    return { json: {} };
  },
});

if (import.meta.main) await runAsProcess(main);
