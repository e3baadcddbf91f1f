/** Runs the emulated enclaves of `play`: two honest ones, and two that no contract may trust. */
import { RestartedServer } from '../restarted_server.ts';

export interface PlayServerOptions {
  readonly root: string;
  readonly application: string;
  /** Folder of the root and the registers. */
  readonly out: string;
  readonly port: number;
  /** Name of the server in log lines, such as "Enclave 1". */
  readonly name: string;
  /** Number of the application's version that the server attests, from 1. */
  readonly image?: number;
  readonly log: (line: string) => void;
  /** Called after each start, with the types that the application signs. */
  readonly onListening?: (signs: string) => void;
}

/** An emulated enclave in a process of its own, which restarts when its files change. */
export class PlayServer {
  readonly url: string;
  readonly #server: RestartedServer;
  #listening = Promise.withResolvers<void>();

  constructor({ root, application, out, port, name, image = 1, log, onListening }: PlayServerOptions) {
    this.url = `http://127.0.0.1:${port}`;
    // Callers that wait for a failed start get its error. If no caller waits, Node must not treat the
    // error as uncaught.
    this.#listening.promise.catch(() => {});
    this.#server = new RestartedServer({
      root,
      env: {
        APP: application,
        ATTEST: 'emulated',
        EMULATED_IMAGE: `${image}`,
        PORT: `${port}`,
        OUT: out,
      },
      name,
      output: image === 1 ? 'errors' : 'none',
      log,
      onListening: ({ signs }) => {
        this.#listening.resolve();
        onListening?.(signs);
      },
      onFailedStart: () => this.#listening.reject(new Error(name)),
    });
  }

  /** Resolves when the server listens; rejects if its first start fails. */
  async listening(): Promise<void> {
    await this.#listening.promise;
  }

  /** Restarts the server with another signing key, as when an enclave restarts. */
  restartWithNewKey(): void {
    this.#listening = Promise.withResolvers();
    this.#listening.promise.catch(() => {});
    this.#server.restartWithNewKey();
  }

  async end(): Promise<void> {
    await this.#server.end('SIGTERM');
  }
}
