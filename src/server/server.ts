import type { Server } from 'node:http';
import type { Express, RequestHandler } from 'express';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { ENCLAVE_KEY_HEADER } from 'sui-enclave/fetch';
import { TASK_SOCKETS_PER_HOST } from 'sui-enclave-service/exchange';
import {
  createGuard,
  findPaths,
  type Guard,
  type HandlerParts,
  mountRoutes,
} from 'sui-enclave-service/http/author_routes';
import { createHttpServer } from 'sui-enclave-service/http/http_server';
import type { InFlight, RequestEnd } from 'sui-enclave-service/http/in_flight';
import type { JsonBodies } from 'sui-enclave-service/http/json_body';
import { JsonText, sendJson, sendText } from 'sui-enclave-service/http/respond';
import { validate } from 'sui-enclave-service/http/validate';
import type { Logger } from 'sui-enclave-service/log';
import { isInstance } from 'sui-enclave-service/thrown';
import * as v from 'valibot';
import type { Application, Endpoint, Routes } from './application/app.ts';
import type { Manifest } from './application/manifest.ts';
import type { Config } from './config.ts';
import { EnclaveServerError } from './enclave_errors.ts';
import { SignedAnswer } from './keys/signer.ts';
import type { Clock } from './nsm/clock.ts';
import type { Documents } from './nsm/documents.ts';
import { type BootReport, readLastEnd } from './reports/boot_report.ts';
import type { Events } from './reports/events.ts';
import type { UpstreamHealth } from './reports/health.ts';
import type { Metrics } from './reports/metrics.ts';
import { type CallEndpoint, SealedEndpoint } from './sealing/sealed_endpoint.ts';
import { SEALED_ROUTE } from './sealing/sealed_route.ts';
import type { SealingKey } from './sealing/sealing_key.ts';
import type { Provisioning } from './secrets/provisioning.ts';
import { type Secrets, SecretsMissing } from './secrets/secrets.ts';
import { answerSecrets } from './secrets/secrets_endpoint.ts';
import type { Tasks } from './tasks/tasks.ts';

export interface ServerParts {
  readonly config: Config;
  readonly log: Logger;
  readonly application: Application;
  /** The handlers that run before the application's endpoints. */
  readonly before: readonly RequestHandler[];
  readonly manifest: Pick<Manifest, 'plain'>;
  /** The content of schema.json. */
  readonly schema: string | undefined;
  /** The 32 bytes that `/health_check` returns and the attestation document contains. */
  readonly publicKey: Uint8Array;
  readonly sealingKey: SealingKey;
  readonly secrets: Secrets;
  readonly provisioning: Provisioning;
  readonly health: UpstreamHealth;
  /** Number of hosts that the application may call. */
  readonly upstreamHosts: number;
  readonly documents: Documents;
  readonly clock: Clock;
  readonly report: BootReport;
  readonly metrics: Metrics | undefined;
  readonly events: Events | undefined;
  readonly tasks: Tasks;
}

/** Creates the enclave's HTTP server, which does not listen yet. */
export function createEnclaveServer(parts: ServerParts): Server {
  const { config, log, provisioning, metrics, events, secrets } = parts;
  const { trustedProxies } = config;
  const { endpoints = [], routes } = parts.application;
  const padding = config.sealedPaddingBytes;
  return createHttpServer({
    limits: config,
    upstreamHosts: parts.upstreamHosts,
    reservedFiles: parts.tasks.states().length > 0 ? parts.upstreamHosts * TASK_SOCKETS_PER_HOST : 0,
    log,
    corsOrigins: config.corsOrigins,
    exposedHeaders: [ENCLAVE_KEY_HEADER],
    trustedProxies,
    routePaths: routes && findPaths(routes),
    slotEndpoints: config.requests === 'sealed' ? [] : endpoints,
    onEnd: createEndObserver(parts),
    routes: (app, inFlight, bodies) => {
      const sealed = new SealedEndpoint(parts.sealingKey, bodies, padding);
      const redact = (message: string) => secrets.redact(message);
      const handlers = { inFlight, bodies, trustedProxies, redact };
      const guard = createGuard(app, parts.before, handlers);
      const endpointParts = { ...parts, inFlight, bodies, sealed, guard };
      for (const endpoint of endpoints) addEndpoint(app, endpoint, endpointParts);
      app.get('/', guard(ping(inFlight)));
      addOwnEndpoints(app, parts, inFlight);
      const answerSealed: RequestHandler = (request, response) => {
        metrics?.sealedArrived();
        events?.emit('sealed', { request_id: inFlight.idOf(response) });
        return sealed.answer(request, response);
      };
      app.post(SEALED_ROUTE, guard(answerSealed));
      app.post('/secrets', (request, response) =>
        answerSecrets(request, response, { provisioning, bodies, inFlight, log, padding }),
      );
      addSchema(app, parts, inFlight);
      if (routes) addRoutes(app, routes, parts, { ...handlers, guard });
    },
  });
}

/** @returns an observer of ended requests; undefined without metrics and events */
function createEndObserver({ metrics, events }: ServerParts): ((end: RequestEnd) => void) | undefined {
  if (!metrics && !events) return undefined;
  return (end) => {
    metrics?.ended(end);
    events?.ended(end);
  };
}

function ping(inFlight: InFlight): RequestHandler {
  return (_request, response) => inFlight.workAtOnce(response, () => sendText(response, 'Pong!'));
}

/**
 * Adds the endpoints that every application has. The most used come first, since Express tries one after the
 * other.
 */
function addOwnEndpoints(app: Express, parts: ServerParts, inFlight: InFlight): void {
  const { config, publicKey, secrets, health, documents, clock, tasks, report } = parts;
  app.get('/health_check', (_request, response) =>
    inFlight.work(response, async () => {
      const endpoints_status = await health.status();
      sendJson(response, 200, { pk: Buffer.from(publicKey).toString('hex'), endpoints_status });
    }),
  );
  // This endpoint has a separate limit: callers that wait for the NSM must not block the application.
  app.get('/get_attestation', async (request, response) => {
    const { nonce } = validate(AttestationQuery, { ...request.query });
    const document = await (nonce === undefined
      ? inFlight.waitFor(response, documents.shared())
      : documents.fresh(Buffer.from(nonce, 'hex'), request.socket, inFlight.leaving(response)));
    sendJson(response, 200, { attestation: Buffer.from(document).toString('hex') });
  });
  // This endpoint has no concurrency limit: a busy server is alive and must say so.
  app.get('/livez', (_request, response) => sendJson(response, 200, { live: true }));
  app.get('/readyz', (_request, response) => {
    requireSecrets(secrets);
    const warnings = [...clock.warnings(), ...tasks.warnings()];
    sendJson(response, 200, warnings.length === 0 ? { ready: true } : { ready: true, warnings });
  });
  app.get('/boot', (_request, response) =>
    inFlight.workAtOnce(response, () => {
      const currentState = { clock: clock.state(), last_end: readLastEnd(config.lastEnd) };
      sendJson(response, 200, { ...report, ...currentState });
    }),
  );
}

function addSchema(app: Express, { schema }: ServerParts, inFlight: InFlight): void {
  const answer = schema === undefined ? undefined : new JsonText(schema);
  app.get('/schema', (_request, response) =>
    inFlight.workAtOnce(response, () => {
      if (!answer) {
        throw new EnclaveServerError('SCHEMA_NOT_FOUND', 'this image has no schema.json of its application');
      }
      sendJson(response, 200, answer);
    }),
  );
}

const AttestationQuery = v.strictObject({
  nonce: v.optional(
    v.pipe(
      v.string('must be given once'),
      v.regex(/^([0-9a-f]{2}){1,512}$/i, 'must be hex of 1 to 512 bytes'),
    ),
  ),
});

/** @throws ConfigError if the server would refuse all their requests */
function addRoutes(
  app: Express,
  routes: Routes,
  { config, manifest, secrets, clock }: ServerParts,
  handlers: HandlerParts & { readonly guard: Guard },
): void {
  const isRefused = config.requests === 'sealed';
  if (isRefused && !manifest.plain) {
    throw new ConfigError(
      `REQUESTS=sealed refuses all requests to the application's routes below ${routes.prefix}: set plain: true in app.yaml to start without them`,
    );
  }
  mountRoutes(app, routes, {
    ...handlers,
    admit: () => {
      if (isRefused) throw sealedRequired();
      requireSecrets(secrets);
    },
    admitAnswer: (answer) => requireClock(config, clock, answer),
  });
}

/** Requires a confirmed clock for a signed answer, even if it was made earlier. @throws CLOCK_UNCONFIRMED */
function requireClock({ clockRequired }: Config, clock: Clock, answer: object): void {
  if (clockRequired && answer instanceof SignedAnswer) clock.requireConfirmed();
}

interface EndpointParts {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly inFlight: InFlight;
  readonly bodies: JsonBodies;
  readonly sealed: SealedEndpoint;
  readonly guard: Guard;
}

function addEndpoint(app: Express, endpoint: Endpoint, parts: EndpointParts): void {
  const { config, secrets, clock, inFlight, bodies, sealed, guard } = parts;
  const { path, method } = endpoint;
  requireMade(endpoint);
  const call: CallEndpoint = (request, response, input) =>
    throwingErrors(() => {
      const answer = endpoint.accept(input);
      return inFlight.work(response, async () => {
        requireSecrets(secrets);
        const caller = { address: config.trustedProxies === 0 ? undefined : request.ip };
        const answered = await answer(caller);
        requireClock(config, clock, answered);
        sendJson(response, 200, answered);
      });
    });
  sealed.add(endpoint, call);
  const add = (handler: RequestHandler) =>
    method === 'GET' ? app.get(path, guard(handler)) : app.post(path, guard(handler));
  if (config.requests === 'sealed') add(refusePlain(endpoint));
  else if (method === 'GET') add((request, response) => call(request, response, { ...request.query }));
  else add(async (request, response) => call(request, response, await bodies.read(request)));
}

/**
 * Turns thrown values into errors, since Express interprets some values that an application may throw, such
 * as 'route' and undefined, as instructions.
 */
async function throwingErrors<T>(handle: () => Promise<T>): Promise<T> {
  try {
    return await handle();
  } catch (thrown) {
    throw isInstance(thrown, Error)
      ? thrown
      : new ApplicationMistake('an endpoint threw a value that is not an Error');
  }
}

/** Refuses endpoints that `endpoint()` has not made, since these are not checked. @throws ConfigError */
function requireMade({ method, path, accept }: Partial<Endpoint>): void {
  if (typeof accept === 'function') return;
  throw new ConfigError(`the endpoint ${method} ${path} must be made by endpoint() or processData()`);
}

/**
 * Returns a handler that refuses plain requests.
 *
 * @throws ConfigError if the endpoint takes no sealed requests either
 */
function refusePlain({ path, idempotent }: Endpoint): RequestHandler {
  if (idempotent === false) {
    throw new ConfigError(
      `the endpoint ${path} is not idempotent and therefore does not accept sealed requests: REQUESTS=sealed would disable it`,
    );
  }
  return () => {
    throw sealedRequired();
  };
}

function sealedRequired(): EnclaveServerError {
  return new EnclaveServerError(
    'SEALED_REQUIRED',
    'this enclave accepts only sealed requests: send them to POST /sealed',
  );
}

function requireSecrets(secrets: Secrets): void {
  const missing = secrets.missing();
  if (missing.length > 0) throw new SecretsMissing(missing, secrets.refused);
}
