/** The backend of the proving service: `POST /input` and `GET /healthz`. */
import { accessSync, constants } from 'node:fs';
import type { Server } from 'node:http';
import type { Express } from 'express';
import { ConfigError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';
import { errorAnswers } from 'sui-enclave-service/http/errors';
import { createHttpServer, listen, shutDown } from 'sui-enclave-service/http/http_server';
import type { InFlight } from 'sui-enclave-service/http/in_flight';
import type { JsonBodies } from 'sui-enclave-service/http/json_body';
import { sendJson, sendText } from 'sui-enclave-service/http/respond';
import type { Logger } from 'sui-enclave-service/log';
import { EngineError, type EnginePath } from '../engine.ts';
import type { ProverMetrics } from '../metrics.ts';
import type { BackendConfig } from './config.ts';
import { findGenerator, type Generator } from './generator.ts';
import { type ApprovedKey, approveKey, KeyFile } from './key.ts';
import { addBackendFigures, backendMetrics } from './metrics.ts';
import { type BackendPart, Proofs } from './proofs.ts';
import { type StartedEngine, Supervisor } from './supervisor.ts';

/**
 * Maximum size of a request in bytes. An input of the full size has 14 KB of JSON, and 170 KB with the
 * largest values.
 */
const BODY_LIMIT_BYTES = 256 * 1024;
const MAX_CONNECTIONS = 1024;
const MAX_CONCURRENT_REQUESTS = 1024;
/** Time for a request to arrive, in milliseconds, in addition to the wait, the witness and the proof. */
const ARRIVAL_MS = 10_000;
/** Time to read the last answer when the service stops, in milliseconds. */
const LAST_ANSWER_MS = 1000;

export interface BackendOptions {
  readonly config: BackendConfig;
  readonly log: Logger;
  /** Option of the supervisor: see SupervisorOptions. */
  readonly backoffMs?: number;
  /** Option of the supervisor: see SupervisorOptions. */
  readonly beatMs?: number;
}

export interface RunningBackend {
  readonly url: string;
  readonly key: ApprovedKey;
  /** URL of the metrics; undefined without `METRICS_PORT`. */
  readonly metricsUrl: string | undefined;
  /** Returns the id of the engine's process. */
  enginePid(): number | undefined;
  /** Refuses new and waiting requests, finishes the proof that has begun, and then stops. */
  close(): Promise<void>;
}

/**
 * Starts the backend.
 *
 * @throws ConfigError if a setting, the key, the generator or the engine can't be used
 */
export async function startBackend({
  config,
  log,
  ...supervisorOptions
}: BackendOptions): Promise<RunningBackend> {
  requireEngine(config.engine);
  const generator = await findGenerator(config.witnessBinaries);
  const keyFile = new KeyFile(config.zkey);
  const { timeoutMs, queue, engine: program } = config;
  const supervisor = new Supervisor({ program, key: keyFile, log, timeoutMs, ...supervisorOptions });
  try {
    const { key, loaded, path } = await loadKey(keyFile, supervisor, config, generator);
    announce(key, path, config, generator, log);
    const { witnessBytes } = loaded;
    const metrics = config.metricsPort === undefined ? undefined : backendMetrics();
    const onPart = metrics && ((part: BackendPart, ms: number) => metrics.observePart(part, ms));
    const proofs = new Proofs({ supervisor, generator, witnessBytes, queue, timeoutMs, log, onPart });
    const parts = { proofs, supervisor, key, engine: path, capacity: queue, metrics };
    const server = createServer(parts, timeoutMs, log);
    const url = await listen(server, {
      host: config.host,
      port: config.port,
      maxConnections: MAX_CONNECTIONS,
    });
    if (metrics) addBackendFigures(metrics, { proofs, supervisor, engine: path, network: key.network });
    const listener = await metrics?.serve(config.metricsPort ?? 0);
    log.info({ url }, 'listening');
    const stop = async () => {
      listener?.close();
      const closed = shutDown(server, timeoutMs + ARRIVAL_MS);
      await proofs.stop();
      // Connections that are still open at that time have no request, or are reading an answer.
      const timer = setTimeout(() => server.closeAllConnections(), LAST_ANSWER_MS);
      await closed;
      clearTimeout(timer);
      keyFile.close();
    };
    let stopped: Promise<void> | undefined;
    const close = () => (stopped ??= stop());
    return { url, key, metricsUrl: listener?.url, enginePid: () => supervisor.pid, close };
  } catch (error) {
    supervisor.stop();
    keyFile.close();
    throw error;
  }
}

function requireEngine(path: string): void {
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new ConfigError(
      `PROVER_ENGINE: ${path} is not an executable file: make prover-dev builds the engine`,
      {
        cause,
      },
    );
  }
}

/**
 * Loads the key, and hashes it at the same time. A damaged key is reported as damaged, even if its hash is
 * unknown.
 */
async function loadKey(
  file: KeyFile,
  supervisor: Supervisor,
  { keyPolicy }: BackendConfig,
  generator: Generator,
): Promise<StartedEngine & { key: ApprovedKey }> {
  const hash = file.hash();
  // This failure is reported below, unless the engine refuses the key first.
  hash.catch(() => {});
  const { loaded, path } = await supervisor.start().catch((cause: unknown) => {
    if (!(cause instanceof EngineError)) throw cause;
    throw new ConfigError(`ZKEY: ${file.path} can't be loaded: ${cause.message}`, { cause });
  });
  const key = approveKey(await hash, loaded, keyPolicy);
  if (!generator.canMake(loaded.wires)) {
    throw new ConfigError(
      `ZKEY and WITNESS_BINARIES belong to different circuits: the key is for witnesses of ${quantity(loaded.wires, 'wire')}, which the generator does not make`,
    );
  }
  return { key, loaded, path };
}

/**
 * Logs which network accepts the proofs. If a proof was made with another network's key, a network refuses it
 * without this reason.
 */
function announce(
  key: ApprovedKey,
  engine: EnginePath,
  { queue }: BackendConfig,
  { size, command }: Generator,
  log: Logger,
): void {
  const { blake2b, network, development } = key;
  const program = command.length === 1 ? 'C++' : 'WebAssembly';
  const line = { network, blake2b, development, size, generator: program, engine, queue };
  if (network === 'development') {
    log.warn(line, 'DEVELOPMENT KEY: no network accepts these proofs, and anyone can forge them');
  } else if (network === 'unknown') {
    log.warn(line, 'the key is not published, but has the hash that ZKEY_BLAKE2B requires');
  } else log.info(line, `the key belongs to ${network}: no other network accepts these proofs`);
  if (engine !== 'avx512ifma') {
    log.warn(
      { engine },
      'this processor has no AVX-512 IFMA: a proof takes three to four times as long, so choose cores and time-outs by the column of this engine in deploy/README.md',
    );
  }
}

function createServer(parts: ServiceParts, timeoutMs: number, log: Logger): Server {
  return createHttpServer({
    log,
    limits: {
      bodyLimitBytes: BODY_LIMIT_BYTES,
      maxConnections: MAX_CONNECTIONS,
      maxConcurrentRequests: MAX_CONCURRENT_REQUESTS,
      // The limit applies four times: to the wait for the witness, the witness, the wait for the proof, and
      // the proof.
      requestTimeoutMs: 4 * timeoutMs + ARRIVAL_MS,
    },
    upstreamHosts: 0,
    corsOrigins: [],
    trustedProxies: 0,
    onEnd: parts.metrics && ((end) => parts.metrics?.countRequest(end)),
    routes: (app, inFlight, bodies) => addEndpoints(app, { ...parts, inFlight, bodies }),
    // Errors are plain text, as callers of such a backend expect. With status 500, the text begins with the
    // error's code.
    answerError: errorAnswers((response, { status, code, message }) =>
      sendText(response, status === 500 ? `${code}: ${message}` : message, status),
    ),
  });
}

interface ServiceParts {
  readonly proofs: Proofs;
  readonly supervisor: Supervisor;
  readonly key: ApprovedKey;
  readonly engine: EnginePath;
  /** Maximum number of waiting requests. */
  readonly capacity: number;
  readonly metrics: ProverMetrics<BackendPart> | undefined;
}

interface EndpointParts extends ServiceParts {
  readonly inFlight: InFlight;
  readonly bodies: JsonBodies;
}

function addEndpoints(app: Express, parts: EndpointParts): void {
  const { proofs, supervisor, key, engine, capacity, inFlight, bodies } = parts;
  app.post('/input', async (request, response) => {
    const leaving = inFlight.leaving(response);
    const input = await bodies.read(request);
    await inFlight.work(response, async () => {
      try {
        const { a, b, c } = await proofs.prove(input, leaving);
        sendJson(response, 200, { pi_a: a, pi_b: b, pi_c: c, protocol: 'groth16', curve: 'bn128' });
      } catch (error) {
        // If the caller has left, the answer would be lost.
        if (!leaving.aborted) throw error;
      }
    });
  });
  app.get('/healthz', (_request, response) => {
    const status = proofs.isStopping ? 'stopping' : supervisor.state;
    sendJson(response, supervisor.hasWorker && !proofs.isStopping ? 200 : 503, {
      status,
      key,
      engine,
      queue: proofs.waiting,
      capacity,
    });
  });
}
