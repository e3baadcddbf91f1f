/** The HTTP server that every service here shares: limits on connections, requests, bodies and time, one place for errors. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { ConfigError } from '../../errors.ts';
import type { Config } from '../config.ts';
import { ServerError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { Connections, createRequestClass } from './connections.ts';
import { type AnswerError, answerError, methodNotAllowed, onClientError, refuseConnect } from './errors.ts';
import { InFlight } from './in_flight.ts';
import { JsonBodies } from './json_body.ts';
import { originForm } from './target.ts';

/** How long a connection may take to send a request's headers, and how long it may be idle between requests. */
const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 30_000;
const MAX_HEADERS = 100;

/** The limits of a server, as `Config` describes them. */
export type Limits = Pick<
  Config,
  'bodyLimitBytes' | 'maxConcurrentRequests' | 'maxConnections' | 'requestTimeoutMs'
>;

export interface HttpServerParts {
  readonly limits: Limits;
  readonly log: Logger;
  /** Makes the router, which answers every request or passes an error on. */
  routes(inFlight: InFlight, bodies: JsonBodies): RequestHandler;
  /** Answers a request with an error. Never throws. Default: in JSON. */
  readonly answerError?: AnswerError;
}

/** Creates an HTTP server, which does not listen yet. */
export function createHttpServer({
  limits,
  log,
  routes,
  answerError: answerWith = answerError,
}: HttpServerParts): Server {
  const connections = new Connections(limits.maxConnections);
  const server = createServer({
    IncomingMessage: createRequestClass(connections),
    // Other upgrades are ignored and the request is answered (RFC 9110, section 7.8).
    shouldUpgradeCallback: ({ socket }) => connections.isFull(socket),
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
    // requireHost checks it and answers with JSON.
    requireHostHeader: false,
  });
  // A peer that is silent for longer than any request may take is considered gone.
  server.setTimeout(2 * limits.requestTimeoutMs + KEEP_ALIVE_TIMEOUT_MS);
  server.on('connection', (socket) => connections.opened(socket));
  const inFlight = new InFlight(log, connections, {
    timeoutMs: limits.requestTimeoutMs,
    maxRunning: limits.maxConcurrentRequests,
  });
  const bodies = new JsonBodies(limits.bodyLimitBytes, limits.requestTimeoutMs);
  server.on('close', () => {
    inFlight.stop();
    bodies.stop();
  });
  const answer = createAnswer(routes(inFlight, bodies), inFlight, answerWith);
  server.on('request', answer);
  // An expectation other than 100-continue may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', answer);
  server.on('clientError', (error, socket) => onClientError(error, socket, inFlight.pendingOn(socket)));
  server.on('connect', (_request, socket) => refuseConnect(socket, inFlight.pendingOn(socket)));
  return server;
}

/** Handles every step of a request within one try block, so that each error is logged and answered here. */
function createAnswer(routes: RequestHandler, inFlight: InFlight, answerWith: AnswerError): RequestListener {
  return (request, response) => {
    const fail = (error: unknown) => answerWith(error, request, response, inFlight.logOf(response));
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

/** An empty router, which takes paths as they are written. */
export function createRouter(): Express {
  const routes = express();
  // In other environments, Express answers an error in its own error handling with the stack.
  routes.set('env', 'production');
  routes.disable('x-powered-by');
  routes.set('query parser', 'simple');
  routes.enable('strict routing');
  routes.enable('case sensitive routing');
  return routes;
}

/** Registers a handler for GET and HEAD. */
export function get(routes: Express, path: string, handler: RequestHandler): void {
  routes.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
}

/** Aborted when the answer was sent or the caller disconnected. */
export function whenClosed(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  return controller.signal;
}

/** Thousands of short headers fit into the size limit, and each costs far more memory than its bytes. */
function requireFewHeaders(request: IncomingMessage): void {
  if (request.rawHeaders.length <= 2 * MAX_HEADERS) return;
  request.rawHeaders = [];
  throw new ServerError('HEADERS_TOO_LARGE', `there are more than ${MAX_HEADERS} headers`);
}

/** RFC 9112, section 3.2. */
export const requireHost: RequestHandler = (request, _response, next) => {
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

/**
 * @param setting the variable that sets the port
 * @returns the server's URL
 * @throws ConfigError if the address can't be listened on
 */
export function listen(
  server: Server,
  { host, port, maxConnections }: Pick<Config, 'host' | 'port' | 'maxConnections'>,
  setting = 'PORT',
): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const remedy =
        error.code === 'EADDRINUSE' ? `, another process listens there: set ${setting} to another` : '';
      reject(
        new ConfigError(
          `can't listen on HOST ${host} and ${setting} ${port}: ${error.code ?? 'unknown error'}${remedy}`,
          { cause: error },
        ),
      );
    });
    server.listen({ host, port, backlog: maxConnections }, () => {
      const { address, family, port: bound } = server.address() as AddressInfo;
      resolve(`http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`);
    });
  });
}

/** Refuses new connections and waits for the requests in flight, at most `graceMs`. */
export function shutDown(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // Otherwise a connection would stay open for its next request after its last answer was sent.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const grace = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(grace);
      resolve();
    });
  });
}
