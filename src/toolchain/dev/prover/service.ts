/** Runs the proving service with the development key: front end and backend as in production, on loopback. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { type FrontendConfig, readFrontendConfig } from 'sui-enclave-prover/frontend/config';
import { startFrontend } from 'sui-enclave-prover/frontend/server';
import type { Logger } from 'sui-enclave-service/log';
import type { LocalIssuer } from 'sui-enclave-testing/issuer';
import { originsOnLoopback } from 'sui-enclave-testing/loopback';
import { type Artifacts, ENGINE, locateGenerator } from '../../prover/artifacts.ts';

const BACKEND = fileURLToPath(new URL('./backend.ts', import.meta.url));
/**
 * Name of the issuer's host. The front end gets keys only from https URLs; `origins` maps this name to
 * loopback.
 */
const LOCAL_HOST = 'issuer.localhost';

export interface ProverOptions {
  readonly artifacts: Artifacts;
  /** Issuer that the service accepts besides the known providers, for tokens to any client. */
  readonly issuer: LocalIssuer;
  readonly log: Logger;
  /** Gets each line of the backend's log. */
  readonly onBackendLine: (line: string) => void;
  /** Port of the front end. Default: the system chooses. */
  readonly port?: number;
  /** Settings of front end and backend. Settings that must fit the development key are ignored. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface RunningProver {
  /** URL at which wallets request proofs. */
  readonly url: string;
  readonly backend: RunningBackendProcess;
  close(): Promise<void>;
}

export interface RunningBackendProcess {
  readonly url: string;
  readonly pid: number;
  /** Rejects if the backend ends before `close` is called. Resolves when `close` has ended it. */
  readonly died: Promise<void>;
  close(): Promise<void>;
}

/** @throws ConfigError if the backend or the front end can't start */
export async function startProver(options: ProverOptions): Promise<RunningProver> {
  const config = readConfig(options);
  const backend = await startBackendProcess(options);
  try {
    const frontend = await startFrontend({
      config: { ...config, backend: new URL(`${backend.url}/input`) },
      log: options.log,
      origins: { [LOCAL_HOST]: new URL(options.issuer.jwksUrl).origin },
    });
    const close = async () => {
      await frontend.close();
      await backend.close();
    };
    return { url: `${frontend.url}/v1`, backend, close };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

function readConfig({ artifacts, issuer, port = 0, env = {} }: ProverOptions): FrontendConfig {
  const config = readFrontendConfig({
    // A development machine may be slow and busy, so it gets more time.
    PROVER_TIMEOUT: '120',
    CORS_ORIGINS: '*',
    ...env,
    HOST: '127.0.0.1',
    PROVER_PORT: String(port),
    // This value is replaced when the backend has a port.
    PROVER_URI: 'http://127.0.0.1/input',
    VERIFYING_KEY: artifacts.verifyingKey,
    ALLOW_INSECURE_DEV_KEY: '1',
    CIRCUIT_SIZE: artifacts.size,
  });
  const { pathname, search } = new URL(issuer.jwksUrl);
  const jwksUrl = new URL(`https://${LOCAL_HOST}${pathname}${search}`);
  return {
    ...config,
    corsOrigins: originsOnLoopback(config.corsOrigins, env['CORS_ORIGINS'] !== undefined),
    clients: [...config.clients, { issuer: issuer.issuer, presenters: [], jwksUrl }],
  };
}

async function startBackendProcess({
  artifacts,
  onBackendLine,
  env = {},
}: ProverOptions): Promise<RunningBackendProcess> {
  const isWasm = locateGenerator(artifacts)[0] === process.execPath;
  const child = fork(BACKEND, {
    env: {
      PATH: process.env['PATH'],
      ...env,
      HOST: '127.0.0.1',
      PORT: '0',
      LOG_LEVEL: 'info',
      ZKEY: artifacts.zkey,
      WITNESS_BINARIES: isWasm ? `${artifacts.circuit}/circuit_js` : artifacts.circuit,
      PROVER_ENGINE: ENGINE,
      ALLOW_INSECURE_DEV_KEY: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Ctrl-C in a terminal reaches a whole process group, but the front end must finish its requests first.
    detached: true,
  });
  const errorOutput = text(child.stderr as Readable);
  let isClosing = false;
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>;
  const died = ended.then(async ([code, signal]) => {
    if (isClosing) return;
    throw new ConfigError(
      `the backend ended: ${(await errorOutput).trim() || (signal ?? `exit code ${code}`)}`,
    );
  });
  // Callers need not wait for `died`, so Node must not treat its rejection as uncaught.
  died.catch(() => {});
  const url = await Promise.race([awaitUrl(child, onBackendLine), died]);
  const close = async () => {
    isClosing = true;
    child.kill('SIGTERM');
    await ended;
  };
  return { url: url as string, pid: child.pid as number, died, close };
}

/** Returns the URL from the line that the backend logs when it listens. */
function awaitUrl({ stdout }: ChildProcess, onLine: (line: string) => void): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: stdout as Readable }).on('line', (line) => {
      const { msg, url } = JSON.parse(line) as { msg?: string; url?: string };
      if (msg === 'listening' && url !== undefined) resolve(url);
      onLine(line);
    });
  });
}
