/**
 * Creates the Express application to which each service adds its endpoints, with the handlers before and
 * after them.
 */
import type { IncomingMessage, RequestListener } from 'node:http';
import { type ParsedUrlQuery, parse } from 'node:querystring';
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { ConfigError } from 'sui-enclave/errors';
import { ServerError } from '../errors.ts';
import { type CorsPolicy, cors, type RoutePaths } from './cors.ts';
import type { AnswerError } from './errors.ts';
import type { InFlight } from './in_flight.ts';
import type { JsonBodies } from './json_body.ts';
import type { Refusals } from './refusals.ts';
import { addHeader } from './respond.ts';
import { originForm } from './target.ts';

const MAX_HEADERS = 100;

/** Parses all parameters: by default, Node would drop those after the thousandth. */
export const readQuery = (query: string): ParsedUrlQuery => parse(query, '&', '=', { maxKeys: 0 });

export interface AppOptions {
  /** The paths of an application's own routes. Default: none. */
  readonly routePaths?: RoutePaths | undefined;
  /** Number of trusted proxies in front, for `request.ip`. */
  readonly trustedProxies: number;
}

export interface AppParts extends AppOptions {
  readonly cors: CorsPolicy;
  readonly inFlight: InFlight;
  readonly bodies: JsonBodies;
  readonly answerError: AnswerError;
  /** Adds the endpoints of the service. */
  routes(app: Express): void;
}

export interface ListenerParts {
  readonly inFlight: InFlight;
  readonly refusals: Refusals;
  readonly answerError: AnswerError;
}

/** Creates the Express application of a service. @throws ConfigError if two endpoints have the same path */
export function createApp({ inFlight, bodies, answerError, routes, ...options }: AppParts): Express {
  const app = express();
  configure(app, options);
  app.use(discardBodies(bodies));
  app.use(cors(options.cors, options.routePaths));
  routes(app);
  requireDistinctPaths(app);
  app.use(refuseUnknown(app));
  app.use(createErrorHandler(inFlight, answerError));
  return app;
}

/** Configures Express so that paths are exact, and nothing is added to answers. */
export function configure(app: Express, { trustedProxies }: Pick<AppOptions, 'trustedProxies'>): void {
  // In other environments, Express' own error handler answers with the stack.
  app.set('env', 'production');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', readQuery);
  app.set('trust proxy', trustedProxies);
}

/** Target that replaces every invalid target. No client can send it, and Express' router can read it. */
const INVALID_TARGET = '/\0';

/**
 * Creates the listener that gives each request its id and deadline, and checks it. It hands a valid request
 * to the application, with a target that Express' router can read. The router would parse any other target
 * with Node's legacy URL parser, which throws an error for some targets and prints others in a warning.
 */
export function createListener(
  app: Express,
  { inFlight, refusals, answerError }: ListenerParts,
): RequestListener {
  // The application answers everything. Without this last handler, Express would create one for each request.
  const handle: RequestListener = (request, response) =>
    app(request as Request, response as Response, () => response.destroy());
  return (request, response) => {
    request.url = originForm(request.method, request.url ?? '') ?? INVALID_TARGET;
    const fail = (error: unknown) => answerError(error, request, response, inFlight.logOf(response));
    if (!inFlight.track(request, response, fail)) return;
    try {
      checkRequest(request);
    } catch (error) {
      fail(error);
      return;
    }
    if (!refusals.take(request, response, handle)) handle(request, response);
  };
}

/** Creates the first handler, which discards the bodies of GET and HEAD. */
function discardBodies(bodies: JsonBodies): RequestHandler {
  return (request, _response, next) => {
    // The body of a GET means nothing (RFC 9110, section 9.3.1).
    if (request.method === 'GET' || request.method === 'HEAD') bodies.discard(request);
    next();
  };
}

/** Checks the headers and the target of a request. @throws ServerError */
function checkRequest(request: IncomingMessage): void {
  requireFewHeaders(request);
  if (request.url === INVALID_TARGET) {
    throw new ServerError('MALFORMED_HTTP', 'the request target is neither a path nor an http or https URL');
  }
  requireHost(request);
}

/**
 * Limits the number of headers: thousands of short headers fit into the size limit, and each costs far more
 * memory than its bytes.
 */
function requireFewHeaders(request: IncomingMessage): void {
  if (request.rawHeaders.length <= 2 * MAX_HEADERS) return;
  request.rawHeaders = [];
  throw new ServerError('HEADERS_TOO_LARGE', `there are more than ${MAX_HEADERS} headers`);
}

/** Checks the header Host (RFC 9112, section 3.2). */
function requireHost({ headers, httpVersion, rawHeaders }: IncomingMessage): void {
  if (headers.host === undefined && httpVersion === '1.1') {
    throw new ServerError('INVALID_INPUT', 'the Host header is missing');
  }
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) throw new ServerError('INVALID_INPUT', 'the Host header must not be repeated');
}

/** Returns the endpoints' paths and methods. */
export function listEndpoints(app: Express): { path: string; methods: string[] }[] {
  return app.router.stack.flatMap(({ route }) =>
    route ? [{ path: route.path, methods: route.stack.map(({ method }) => method) }] : [],
  );
}

function requireDistinctPaths(app: Express): void {
  const paths = new Set<string>();
  for (const { path } of listEndpoints(app)) {
    if (paths.has(path)) throw new ConfigError(`the endpoint ${path} is defined twice`);
    paths.add(path);
  }
}

/**
 * Creates the handler that refuses unknown paths, and methods that an endpoint does not support (RFC 9110,
 * section 10.2.1).
 */
function refuseUnknown(app: Express): RequestHandler {
  const methodsByPath = new Map(listEndpoints(app).map(({ path, methods }) => [path, methods]));
  return (request, response) => {
    const methods = methodsByPath.get(request.path);
    if (!methods) throw new ServerError('NOT_FOUND', 'no such endpoint');
    // The route is set for the log: Express sets it only if the method matches too.
    request.route = { path: request.path };
    const allow = methods.includes('get') ? 'GET, HEAD' : 'POST';
    addHeader(response, 'allow', allow);
    throw new ServerError('METHOD_NOT_ALLOWED', `this endpoint supports ${allow}`);
  };
}

/** Creates the last handler, which Express recognises as a handler of errors by its four parameters. */
function createErrorHandler(inFlight: InFlight, answerError: AnswerError): ErrorRequestHandler {
  return (error, request, response, _next) => {
    if (inFlight.isLeaving(response, error)) return;
    answerError(error, request, response, inFlight.logOf(response));
  };
}
