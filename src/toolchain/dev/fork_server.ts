/** `serve.ts` as a process of its own. */
import { type ChildProcess, fork, type StdioOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SERVE = fileURLToPath(new URL('serve.ts', import.meta.url));

/** Message that the server listens. */
export interface ListeningMessage {
  readonly port: string;
  /** The name of its registers' file, if it attests. */
  readonly pcrsName?: string | undefined;
  /** The types that the application signs, as JSON. */
  readonly signs: string;
}

/** Message that the server has loaded a file, or that it listens. */
export type ServerMessage = { readonly file: string } | ListeningMessage;

type Output = 'all' | 'errors' | 'none';

export interface ForkOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv?: readonly string[];
  /**
   * Seed of its signing key under ATTEST=emulated, 32 bytes, sent on request: no file and no environment has
   * it.
   */
  readonly seed: Uint8Array;
  /** What this process prints of its output: all of it, only standard error, or nothing. Default: all. */
  readonly output?: Output;
}

// Node gives a terminal back the mode that it had at the start of a process: the parent may have changed it
// meanwhile, to read single keys.
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
    // Bytes stay bytes.
    serialization: 'advanced',
  });
  server.stderr?.pipe(process.stderr);
  server.on('message', (message: ServerMessage | { readonly wants: 'seed' }) => {
    // The callback takes the error if the server has ended meanwhile, which is not an error of this process.
    if ('wants' in message) server.send({ seed }, () => {});
    else onMessage(message, server);
  });
  return server;
}
