import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import * as v from 'valibot';
import { type Application, type Caller, type Endpoint, endpoint } from './app.ts';
import { type BootReport, readLastEnd } from './boot_report.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { ConfigError, InvalidInput } from './errors.ts';
import type { EndpointHealth } from './health.ts';
import { cors } from './http/cors.ts';
import { answerError, methodNotAllowed, notFound, onClientError } from './http/errors.ts';
import { InFlight } from './http/in_flight.ts';
import { readJson } from './http/json_body.ts';
import { sendJson, sendText } from './http/respond.ts';
import { validate } from './http/validate.ts';
import type { Logger } from './log.ts';
import type { Nsm } from './nsm/nsm.ts';
import { type Secrets, SecretsMissing } from './secrets.ts';

/** Time for a connection to send a request's headers, and to be idle between two requests. */
const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 30_000;

export interface ServerParts {
  readonly config: Config;
  readonly log: Logger;
  readonly application: Application;
  /** The 32 bytes that `/health_check` shows and the attestation document holds. */
  readonly publicKey: Uint8Array;
  readonly secrets: Secrets;
  readonly health: EndpointHealth;
  readonly nsm: Nsm;
  readonly clock: Clock;
  readonly report: BootReport;
}

/** The HTTP server around the parts; it does not listen yet. */
export function createHttpServer(parts: ServerParts): Server {
  const { config } = parts;
  const server = createServer({
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, config.requestTimeoutMs),
    requestTimeout: config.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
    // Checked below, where the answer is JSON.
    requireHostHeader: false,
  });
  // A peer that neither reads nor writes for longer than any request may take is gone.
  server.setTimeout(2 * config.requestTimeoutMs + KEEP_ALIVE_TIMEOUT_MS);
  const inFlight = new InFlight(parts.log, config.requestTimeoutMs);
  server.on('clientError', (error, socket) => {
    onClientError(error, socket as Socket, inFlight.pendingOn(socket));
  });
  const routes: RequestHandler = createRoutes(parts, inFlight);
  const answer = (request: Request, response: Response) =>
    // In place of Express' own last step, which prints an error whole, and ends the connection of one that
    // was answered at its deadline.
    routes(request, response, (error: unknown) => answerError(error, request, response));
  server.on('request', answer as RequestListener);
  // An expectation other than 100-continue may be passed over (RFC 9110, section 10.1.1).
  server.on('checkExpectation', answer as RequestListener);
  return server;
}

function createRoutes(parts: ServerParts, inFlight: InFlight): Express {
  const { config, application, publicKey, secrets, health, nsm, clock, report } = parts;
  const routes = express();
  // Elsewhere, Express answers a fault of its own error handling with the stack.
  routes.set('env', 'production');
  routes.disable('x-powered-by');
  routes.set('query parser', 'simple');
  routes.enable('strict routing');
  routes.enable('case sensitive routing');
  routes.set('trust proxy', config.trustedProxies);

  routes.use(inFlight.track(), requireHost, cors(config.corsOrigins));

  // Without a limit: a busy server is alive, and says so.
  get(routes, '/livez', (_request, response) => sendJson(response, 200, { live: true }));
  get(routes, '/readyz', (_request, response) => {
    requireSecrets(secrets);
    const warnings = clock.warnings();
    sendJson(response, 200, warnings.length === 0 ? { ready: true } : { ready: true, warnings });
  });

  const limited = inFlight.limit(config.maxConcurrentRequests);
  const taken = new Set(['/', '/livez', '/readyz', '/health_check', '/get_attestation', '/boot']);
  for (const own of endpointsOf(application)) {
    if (taken.has(own.path)) throw new ConfigError(`the endpoint ${own.path} is defined twice`);
    if (!/^(\/[A-Za-z0-9_.-]+)+$/.test(own.path)) throw new ConfigError(`${own.path} is not a fixed path`);
    taken.add(own.path);
    addEndpoint(routes, own, limited, parts);
  }

  const getLimited = (path: string, handler: RequestHandler) => get(routes, path, limited(handler));
  getLimited('/', (_request, response) => sendText(response, 'Pong!'));
  getLimited('/health_check', async (_request, response) => {
    const endpoints_status = await health.status();
    sendJson(response, 200, { pk: Buffer.from(publicKey).toString('hex'), endpoints_status });
  });
  getLimited('/boot', (_request, response) => {
    const now = { clock: clock.state(), last_end: readLastEnd(config.lastEnd) };
    sendJson(response, 200, { ...report, ...now });
  });
  getLimited('/get_attestation', async (request, response) => {
    const { nonce } = validate(AttestationQuery, { ...request.query });
    const document = await nsm.attestation({
      publicKey,
      nonce: nonce === undefined ? null : Buffer.from(nonce, 'hex'),
      userData: null,
    });
    sendJson(response, 200, { attestation: Buffer.from(document).toString('hex') });
  });

  routes.use(notFound);
  return routes;
}

const AttestationQuery = v.strictObject({
  nonce: v.optional(
    v.pipe(
      v.string('must be given once'),
      v.regex(/^([0-9a-f]{2}){1,512}$/i, 'must be hex of 1 to 512 bytes'),
    ),
  ),
});

/** `/process_data` is an endpoint whose body has one member. */
function endpointsOf({ processData, endpoints = [] }: Application): readonly Endpoint[] {
  if (!processData) return endpoints;
  const body = v.strictObject({ payload: processData.payload });
  const handle = ({ payload }: { payload: never }, caller: Caller) => processData.handle(payload, caller);
  return [endpoint({ method: 'POST', path: '/process_data', body, handle }), ...endpoints];
}

function addEndpoint(
  routes: Express,
  own: Endpoint,
  limited: (handler: RequestHandler) => RequestHandler,
  { config, secrets }: ServerParts,
): void {
  const { body } = own;
  const callerOf = (request: Request): Caller => ({
    address: config.trustedProxies === 0 ? undefined : request.ip,
  });
  if (own.method === 'GET') {
    const handler: RequestHandler = async (request, response) => {
      requireSecrets(secrets);
      sendJson(response, 200, await own.handle(undefined as never, callerOf(request)));
    };
    get(routes, own.path, limited(handler));
    return;
  }
  if (!body) throw new ConfigError(`the endpoint POST ${own.path} needs a schema of its body`);
  const handler: RequestHandler = async (request, response) => {
    const input = validate(body, await readJson(request, config.bodyLimitBytes));
    requireSecrets(secrets);
    sendJson(response, 200, await own.handle(input, callerOf(request)));
  };
  routes.route(own.path).post(limited(handler)).all(methodNotAllowed('POST'));
}

/** GET, and with it HEAD. */
function get(routes: Express, path: string, handler: RequestHandler): void {
  routes.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
}

/** RFC 9112, section 3.2. */
const requireHost: RequestHandler = (request, _response, next) => {
  if (request.headers.host === undefined && request.httpVersion === '1.1') {
    throw new InvalidInput('the Host header is missing');
  }
  const { rawHeaders } = request;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) throw new InvalidInput('the Host header is there twice');
  next();
};

function requireSecrets(secrets: Secrets): void {
  const missing = secrets.missing();
  if (missing.length > 0) throw new SecretsMissing(missing, secrets.refused);
}
