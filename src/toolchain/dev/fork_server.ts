/** `serve.ts` as a process of its own. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SERVE = fileURLToPath(new URL('serve.ts', import.meta.url));

/** It listens. */
export interface ListeningMessage {
  readonly port: string;
  /** The name of its registers' file, if it attests. */
  readonly pcrsName?: string | undefined;
}

/** It loads a file; or it listens. */
export type ServerMessage = { readonly file: string } | ListeningMessage;

export interface ForkOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv?: readonly string[];
  /**
   * Seed of its signing key under ATTEST=emulated, 32 bytes, sent on request: no file and no environment has
   * it.
   */
  readonly seed: Uint8Array;
  /** Keeps the log off standard output. */
  readonly quiet?: boolean;
}

export function forkServer(
  { env, execArgv = [], seed, quiet = false }: ForkOptions,
  onMessage: (message: ServerMessage, server: ChildProcess) => void,
): ChildProcess {
  const server = fork(SERVE, {
    env,
    execArgv: [...execArgv],
    stdio: ['inherit', quiet ? 'ignore' : 'inherit', 'inherit', 'ipc'],
    // Bytes stay bytes.
    serialization: 'advanced',
  });
  server.on('message', (message: ServerMessage | { readonly wants: 'seed' }) => {
    // With a callback, since it may have ended meanwhile, which is not an error of this process.
    if ('wants' in message) server.send({ seed }, () => {});
    else onMessage(message, server);
  });
  return server;
}
