/** Declares the fakes that `make dev` uses for an application's hosts and secrets: see src/apps/README.md. */
import { createServer, type RequestListener } from 'node:http';
import { serveLoopback } from './loopback.ts';

/** Result of `start()` in `src/apps/<name>/stand_in.ts`. */
export interface Fakes {
  /** Origins that replace `https://<host>`, by hosts of app.yaml. Other hosts stay real. */
  readonly origins: Readonly<Record<string, string>>;
  /**
   * Values of all secrets in app.yaml. Secrets in the environment are not read, so that a fake never sees a
   * real secret.
   */
  readonly secrets: Readonly<Record<string, string>>;
  /** Settings that fit the fakes. They override server.env, and the environment overrides them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Example of a request, with a body if it is a POST. */
  readonly example: { readonly path: string; readonly body?: object };
  /**
   * Further requests whose signed answers the tests of the Move packages need, by name. `sui-enclave test`
   * makes a module `signed_<name>` for each, and `signed_answer` for `example`. If there are further
   * requests, the answer to the example need not be signed.
   */
  readonly answers?: Readonly<Record<string, { readonly path: string; readonly body?: object }>>;
  /** Lines that `make dev` prints, with facts that a caller needs to use the fakes, such as client ids. */
  readonly notes?: readonly string[];
  close(): Promise<void>;
}

export interface Loopback {
  readonly origin: string;
  /** Returns the number of connections accepted so far. */
  connections(): number;
  close(): Promise<void>;
}

/**
 * Starts an HTTP server on a free port of 127.0.0.1, for programs and pages of this machine.
 *
 * @param fakedHost name of the host that the server imitates, for requests that a proxy forwards unchanged
 */
export async function listenOnLoopback(listener: RequestListener, fakedHost?: string): Promise<Loopback> {
  let connections = 0;
  const server = createServer(listener);
  server.on('connection', () => {
    connections += 1;
  });
  const origin = await serveLoopback(server, 0, fakedHost);
  return {
    origin,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
