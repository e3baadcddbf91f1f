/** The fakes that `make dev` uses for an application's hosts and secrets: see src/apps/README.md. */
import { createServer, type RequestListener } from 'node:http';
import { serveLoopback } from './loopback.ts';

/** The result of `start()` of `src/apps/<name>/stand_in.ts`. */
export interface Fakes {
  /**
   * The origin that is asked instead of `https://<host>`, by hosts of app.yaml. Others stay the real ones.
   */
  readonly origins: Readonly<Record<string, string>>;
  /**
   * All secrets of app.yaml. Those of the environment are not read, so that a fake never sees a real secret.
   */
  readonly secrets: Readonly<Record<string, string>>;
  /** Settings that only fit the fakes. The environment overrides them, and they override server.env. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A request to try, with a body for POST. */
  readonly example: { readonly path: string; readonly body?: object };
  /**
   * Further requests whose signed answers the tests of the Move packages need, by name: `sui-enclave test`
   * makes the module `signed_<name>` of each, and `signed_answer` of `example`. Beside further requests the
   * example may be one whose answer is not signed.
   */
  readonly answers?: Readonly<Record<string, { readonly path: string; readonly body?: object }>>;
  /** Lines that `make dev` prints: what a caller must know to use the fakes, such as client ids. */
  readonly notes?: readonly string[];
  close(): Promise<void>;
}

export interface Loopback {
  readonly origin: string;
  /** Connections accepted so far. */
  connections(): number;
  close(): Promise<void>;
}

/**
 * Returns an HTTP server on a free port of 127.0.0.1, for programs and pages of this machine.
 *
 * @param fakedHost the name of the host that it is a fake of, for requests that a proxy forwards unchanged
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
