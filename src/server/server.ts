import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import * as v from 'valibot';
import { type Application, type Caller, type Endpoint, endpoint } from '../app.ts';
import { ConfigError } from '../errors.ts';
import type { Documents } from '../nsm/documents.ts';
import { type BootReport, readLastEnd } from './boot_report.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { ServerError } from './errors.ts';
import type { EndpointHealth } from './health.ts';
import { Bodies } from './http/body.ts';
import { Connections, createRequestClass } from './http/connections.ts';
import { cors } from './http/cors.ts';
import { answerError, methodNotAllowed, notFound, onClientError, refuseConnect } from './http/errors.ts';
import { InFlight } from './http/in_flight.ts';
import { sendJson, sendText } from './http/respond.ts';
import { type CallEndpoint, SealedEndpoint } from './http/sealed.ts';
import { originForm } from './http/target.ts';
import { validate } from './http/validate.ts';
import type { Logger } from './log.ts';
import type { SealingKey } from './sealing_key.ts';
import { type Secrets, SecretsMissing } from './secrets.ts';
import { SignedAnswer } from './signer.ts';

/** How long a connection may take to send a request's headers, and how long it may be idle between requests. */
const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 30_000;
const MAX_HEADERS = 100;

export interface ServerParts {
  readonly config: Config;
  readonly log: Logger;
  readonly application: Application;
  /** The 32 bytes that `/health_check` returns and the attestation document contains. */
  readonly publicKey: Uint8Array;
  readonly sealingKey: SealingKey;
  readonly secrets: Secrets;
  readonly health: EndpointHealth;
  readonly documents: Documents;
  readonly clock: Clock;
  readonly report: BootReport;
}

/** Creates the HTTP server, which does not listen yet. */
export function createHttpServer(parts: ServerParts): Server {
  const { config, log } = parts;
  const connections = new Connections(config.maxConnections);
  const server = createServer({
    IncomingMessage: createRequestClass(connections),
    // Other upgrades are ignored and the request is answered (RFC 9110, section 7.8).
    shouldUpgradeCallback: ({ socket }) => connections.isFull(socket),
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, config.requestTimeoutMs),
    requestTimeout: config.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
    // requireHost checks it and answers with JSON.
    requireHostHeader: false,
  });
  // A peer that is silent for longer than any request may take is considered gone.
  server.setTimeout(2 * config.requestTimeoutMs + KEEP_ALIVE_TIMEOUT_MS);
  server.on('connection', (socket) => connections.opened(socket));
  const inFlight = new InFlight(log, connections, {
    timeoutMs: config.requestTimeoutMs,
    maxRunning: config.maxConcurrentRequests,
  });
  const bodies = new Bodies(config.bodyLimitBytes, config.requestTimeoutMs);
  server.on('close', () => {
    inFlight.stop();
    bodies.stop();
  });
  const answer = createAnswer(createRoutes(parts, inFlight, bodies), inFlight);
  server.on('request', answer);
  // An expectation other than 100-continue may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', answer);
  server.on('clientError', (error, socket) => onClientError(error, socket, inFlight.pendingOn(socket)));
  server.on('connect', (_request, socket) => refuseConnect(socket, inFlight.pendingOn(socket)));
  return server;
}

/** Handles every step of a request within one try block, so that each error is logged and answered here. */
function createAnswer(routes: RequestHandler, inFlight: InFlight): RequestListener {
  return (request, response) => {
    const fail = (error: unknown) => answerError(error, request, response, inFlight.logOf(response));
    try {
      if (!inFlight.track(request, response, fail)) return;
      requireFewHeaders(request);
      const target = originForm(request.method, request.url ?? '');
      if (target === null) {
        throw new ServerError(
          'MALFORMED_HTTP',
          'the request target is neither a path nor an http or https URL',
        );
      }
      request.url = target;
      // `fail` replaces Express' final handler, which prints the whole error and closes the connection of a request
      // that was answered at its deadline.
      routes(request as Request, response as Response, fail);
    } catch (error) {
      fail(error);
    }
  };
}

function createRoutes(parts: ServerParts, inFlight: InFlight, bodies: Bodies): Express {
  const { config, application, publicKey, sealingKey, secrets, health, documents, clock, report } = parts;
  const routes = express();
  // In other environments, Express answers an error in its own error handling with the stack.
  routes.set('env', 'production');
  routes.disable('x-powered-by');
  routes.set('query parser', 'simple');
  routes.enable('strict routing');
  routes.enable('case sensitive routing');
  routes.set('trust proxy', config.trustedProxies);

  routes.use(requireHost, cors(config.corsOrigins));

  // Without a concurrency limit: a busy server is alive and must say so.
  get(routes, '/livez', (_request, response) => sendJson(response, 200, { live: true }));
  get(routes, '/readyz', (_request, response) => {
    requireSecrets(secrets);
    const warnings = clock.warnings();
    sendJson(response, 200, warnings.length === 0 ? { ready: true } : { ready: true, warnings });
  });
  // With a separate limit: callers that wait for the NSM must not block the application.
  get(routes, '/get_attestation', async (request, response) => {
    const { nonce } = validate(AttestationQuery, { ...request.query });
    const document = await (nonce === undefined
      ? documents.shared()
      : documents.fresh(Buffer.from(nonce, 'hex'), request.socket, whenClosed(response)));
    sendJson(response, 200, { attestation: Buffer.from(document).toString('hex') });
  });

  const sealed = new SealedEndpoint(sealingKey, bodies, config.sealedPaddingBytes);
  routes
    .route('/sealed')
    .post((request, response) => sealed.answer(request, response))
    .all(methodNotAllowed('POST'));

  const taken = new Set(['/', '/livez', '/readyz', '/health_check', '/get_attestation', '/boot', '/sealed']);
  for (const own of endpointsOf(application)) {
    if (taken.has(own.path)) throw new ConfigError(`the endpoint ${own.path} is defined twice`);
    if (!/^(\/[A-Za-z0-9_.-]+)+$/.test(own.path)) throw new ConfigError(`${own.path} is not a fixed path`);
    taken.add(own.path);
    addEndpoint(routes, own, { config, secrets, clock, inFlight, bodies, sealed });
  }

  const getLimited = (path: string, handle: (response: Response) => Promise<void> | void) =>
    get(routes, path, (_request, response) => inFlight.work(response, () => handle(response)));
  getLimited('/', (response) => sendText(response, 'Pong!'));
  getLimited('/health_check', async (response) => {
    const endpoints_status = await health.status();
    sendJson(response, 200, { pk: Buffer.from(publicKey).toString('hex'), endpoints_status });
  });
  getLimited('/boot', (response) => {
    const now = { clock: clock.state(), last_end: readLastEnd(config.lastEnd) };
    sendJson(response, 200, { ...report, ...now });
  });

  routes.use(notFound);
  return routes;
}

/** Aborted when the answer was sent or the caller disconnected. */
function whenClosed(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  return controller.signal;
}

const AttestationQuery = v.strictObject({
  nonce: v.optional(
    v.pipe(
      v.string('must be given once'),
      v.regex(/^([0-9a-f]{2}){1,512}$/i, 'must be hex of 1 to 512 bytes'),
    ),
  ),
});

/** `/process_data` is an endpoint whose body has the single property `payload`. */
function endpointsOf({ processData, endpoints = [] }: Application): readonly Endpoint[] {
  if (!processData) return endpoints;
  const { idempotent = true } = processData;
  const body = v.strictObject({ payload: processData.payload });
  const handle = ({ payload }: { payload: never }, caller: Caller) => processData.handle(payload, caller);
  return [endpoint({ method: 'POST', path: '/process_data', body, idempotent, handle }), ...endpoints];
}

interface EndpointParts {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly inFlight: InFlight;
  readonly bodies: Bodies;
  readonly sealed: SealedEndpoint;
}

function addEndpoint(routes: Express, own: Endpoint, parts: EndpointParts): void {
  const { config, secrets, clock, inFlight, bodies, sealed } = parts;
  requireSchema(own);
  const call: CallEndpoint = (request, response, input) => {
    const schema = own.method === 'GET' ? own.query : own.body;
    const valid = (schema && validate(schema, input)) as never;
    return inFlight.work(response, async () => {
      requireSecrets(secrets);
      const caller = { address: config.trustedProxies === 0 ? undefined : request.ip };
      const answered = await own.handle(valid, caller);
      // One that was signed earlier may be handed out again.
      if (config.clockRequired && answered instanceof SignedAnswer) clock.requireConfirmed();
      sendJson(response, 200, answered);
    });
  };
  sealed.add(own, call);
  if (config.requests === 'sealed') {
    if (own.idempotent === false) {
      throw new ConfigError(
        `the endpoint ${own.path} is not idempotent, so it takes no sealed requests: REQUESTS=sealed would disable it`,
      );
    }
    routes.all(own.path, requireSealed);
  }
  if (own.method === 'GET') {
    get(routes, own.path, (request, response) => call(request, response, { ...request.query }));
    return;
  }
  const handler: RequestHandler = async (request, response) => {
    await call(request, response, await bodies.readJson(request));
  };
  routes.route(own.path).post(handler).all(methodNotAllowed('POST'));
}

/** @throws ConfigError */
function requireSchema({ method, path, body, query }: Endpoint): void {
  if (method === 'GET' && body) {
    throw new ConfigError(`the endpoint GET ${path} can't have a body: give it a query`);
  }
  if (method === 'POST' && query) {
    throw new ConfigError(`the endpoint POST ${path} can't have a query: give it a body`);
  }
  if (method === 'POST' && !body) {
    throw new ConfigError(`the endpoint POST ${path} needs a schema of its body`);
  }
}

const requireSealed: RequestHandler = () => {
  throw new ServerError('SEALED_REQUIRED', 'this enclave takes sealed requests only: see POST /sealed');
};

/** Registers a handler for GET and HEAD. */
function get(routes: Express, path: string, handler: RequestHandler): void {
  routes.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
}

/** Thousands of short headers fit into the size limit, and each costs far more memory than its bytes. */
function requireFewHeaders(request: IncomingMessage): void {
  if (request.rawHeaders.length <= 2 * MAX_HEADERS) return;
  request.rawHeaders = [];
  throw new ServerError('HEADERS_TOO_LARGE', `there are more than ${MAX_HEADERS} headers`);
}

/** RFC 9112, section 3.2. */
const requireHost: RequestHandler = (request, _response, next) => {
  if (request.headers.host === undefined && request.httpVersion === '1.1') {
    throw new ServerError('INVALID_INPUT', 'the Host header is missing');
  }
  const { rawHeaders } = request;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) throw new ServerError('INVALID_INPUT', 'the Host header must not be repeated');
  next();
};

function requireSecrets(secrets: Secrets): void {
  const missing = secrets.missing();
  if (missing.length > 0) throw new SecretsMissing(missing, secrets.refused);
}
