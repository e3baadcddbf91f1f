/** Runs the front end's HTTP server: `POST /v1`, `GET /ping` and `GET /readyz`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpServer, listen, shutDown } from 'sui-enclave-service/http/http_server';
import { sendJson, sendText } from 'sui-enclave-service/http/respond';
import type { Logger } from 'sui-enclave-service/log';
import { frontendMetrics } from './metrics.ts';
import { type ProvingOptions, ProvingService } from './service.ts';

export interface RunningFrontend {
  readonly url: string;
  /** URL of the metrics; undefined without `METRICS_PORT`. */
  readonly metricsUrl: string | undefined;
  /** Refuses new connections, finishes the requests in flight, and then stops. */
  close(): Promise<void>;
}

const NETWORK_PAUSE_MS = 10_000;
const NETWORK_ATTEMPTS = 30;

/** Starts the front end. @throws ConfigError if the server can't listen on the address */
export async function startFrontend(options: ProvingOptions): Promise<RunningFrontend> {
  const { config, log } = options;
  const service = new ProvingService(options);
  const metrics = config.metricsPort === undefined ? undefined : frontendMetrics(service);
  if (metrics) service.onPart = (part, ms) => metrics.observePart(part, ms);
  const server = createHttpServer({
    limits: config.limits,
    upstreamHosts: service.hosts,
    log,
    corsOrigins: config.corsOrigins,
    trustedProxies: 0,
    onEnd: metrics && ((end) => metrics.countRequest(end)),
    routes: (app, inFlight, bodies) => {
      app.post('/v1', async (request, response) => {
        const leaving = inFlight.leaving(response);
        const body = await bodies.read(request);
        await inFlight.work(response, async () => {
          try {
            sendJson(response, 200, await service.prove(body, leaving));
          } catch (error) {
            // If the caller has left, the answer would be lost.
            if (!leaving.aborted) throw error;
          }
        });
      });
      app.get('/readyz', async (_request, response) => {
        sendJson(response, 200, await service.readiness(inFlight.leaving(response)));
      });
      app.get('/ping', (_request, response) => sendText(response, 'pong'));
    },
  });
  const { host, port, limits } = config;
  const url = await listen(server, { host, port, maxConnections: limits.maxConnections }, 'PROVER_PORT');
  const listener = await metrics?.serve(config.metricsPort ?? 0);
  announce(options, url);
  const closing = new AbortController();
  // This runs in the background: a backend may take a minute to load its key.
  waitForNetwork(service, log, closing.signal).catch((err: unknown) => {
    if (!closing.signal.aborted) log.error({ err }, 'could not ask the backend for its network');
  });
  return {
    url,
    metricsUrl: listener?.url,
    close: () => {
      closing.abort();
      listener?.close();
      return shutDown(server, limits.requestTimeoutMs);
    },
  };
}

/**
 * Asks the backend until it names its network. Gives up after five minutes, since backends of another kind
 * never name it.
 */
async function waitForNetwork(service: ProvingService, log: Logger, closing: AbortSignal): Promise<void> {
  if (await service.checkNetwork()) return;
  log.warn(
    {},
    'the backend has not named its network yet: until it does, only its first proof reveals a wrong key',
  );
  for (let attempt = 1; attempt < NETWORK_ATTEMPTS; attempt++) {
    await sleep(NETWORK_PAUSE_MS, undefined, { signal: closing, ref: false });
    if (await service.checkNetwork()) return;
  }
}

/** Logs the start, and warns of settings that an operator may have chosen unintentionally. */
function announce({ config, log }: ProvingOptions, url: string): void {
  const { keys, profile, clients, acceptsAnyClient, corsOrigins, timeoutSeconds } = config;
  const issuers = [...new Set(clients.map(({ issuer }) => issuer))];
  const { network } = keys.own;
  log.info({ url, network, profile: profile.name, issuers, timeout_seconds: timeoutSeconds }, 'listening');
  if (network === 'development') {
    log.warn({}, 'DEVELOPMENT KEY: no validator accepts these proofs, and anyone may be able to forge them');
  }
  if (acceptsAnyClient) log.warn({}, 'CLIENTS is not set: every client of these issuers gets proofs');
  if (corsOrigins !== '*' && corsOrigins.length === 0) {
    log.warn(
      {},
      "CORS_ORIGINS is not set: pages can't call this service directly, only through their own back end",
    );
  }
}
