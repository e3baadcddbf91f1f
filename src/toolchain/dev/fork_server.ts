/** Runs `serve.ts` in a process of its own. */
import { type ChildProcess, fork, type StdioOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SERVE = fileURLToPath(new URL('serve.ts', import.meta.url));

/** Message that the server sends when it listens. */
export interface ListeningMessage {
  readonly port: string;
  /** Name of the file with the server's registers; undefined if the server does not attest. */
  readonly pcrsName?: string | undefined;
  /** The types that the application signs, in JSON. */
  readonly signs: string;
  /** Names of the application's tasks. */
  readonly tasks: readonly string[];
}

/** Message of the server that it has loaded a file, or that it listens. */
export type ServerMessage = { readonly file: string } | ListeningMessage;

type Output = 'all' | 'errors' | 'none';

export interface ForkOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv?: readonly string[];
  /**
   * Seed of the server's signing key under ATTEST=emulated, 32 bytes. The server requests it in a message, so
   * it is in no file and no environment.
   */
  readonly seed: Uint8Array;
  /**
   * Part of the server's output that this process prints: all of it, only standard error, or nothing.
   * Default: all.
   */
  readonly output?: Output;
}

// At the end of a process with a terminal, Node sets the terminal to the mode that it had at the start. The
// parent may have changed the mode in the meantime, to read single keys.
const STDIO: Readonly<Record<Output, StdioOptions>> = {
  all: ['inherit', 'inherit', 'inherit', 'ipc'],
  errors: ['ignore', 'ignore', 'pipe', 'ipc'],
  none: ['ignore', 'ignore', 'ignore', 'ipc'],
};

export function forkServer(
  { env, execArgv = [], seed, output = 'all' }: ForkOptions,
  onMessage: (message: ServerMessage, server: ChildProcess) => void,
): ChildProcess {
  const server = fork(SERVE, {
    env,
    execArgv: [...execArgv],
    stdio: STDIO[output],
    // This serialization keeps bytes as bytes.
    serialization: 'advanced',
  });
  server.stderr?.pipe(process.stderr);
  server.on('message', (message: ServerMessage | { readonly wants: 'seed' }) => {
    // The callback ignores the error if the server has ended in the meantime, which is not an error of this
    // process.
    if ('wants' in message) server.send({ seed }, () => {});
    else onMessage(message, server);
  });
  return server;
}
