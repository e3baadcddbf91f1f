/**
 * The HTTP server that every service here shares: limits on connections, requests, bodies and time, and one
 * place for errors.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type ListenOptions,
  Socket,
  type Server as TcpServer,
} from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { ConfigError } from 'sui-enclave/errors';
import type { ServerError } from '../errors.ts';
import type { Address, Limits } from '../limits.ts';
import type { Logger } from '../log.ts';
import { allowedConnections } from '../open_files.ts';
import { codeOf } from '../thrown.ts';
import { type AppOptions, createApp, createListener } from './app.ts';
import { Connections, createRequestClass } from './connections.ts';
import { CorsPolicy, type Origins } from './cors.ts';
import { type AnswerError, answerError, endInSilence, onClientError, refuseConnect } from './errors.ts';
import { InFlight, type RequestEnd } from './in_flight.ts';
import { JsonBodies } from './json_body.ts';
import { Refusals, type SlotEndpoint } from './refusals.ts';

/** Time limit for the headers of a request, and for idle connections between requests, in milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 30_000;

export interface HttpServerParts extends AppOptions {
  /** The origins whose pages may read answers. */
  readonly corsOrigins: '*' | Origins;
  /** Headers of answers that these pages may read, besides those of every service. Default: none. */
  readonly exposedHeaders?: readonly string[] | undefined;
  /** Endpoints whose handlers only work in a slot; see `Refusals`. Default: none. */
  readonly slotEndpoints?: readonly SlotEndpoint[] | undefined;
  readonly limits: Limits;
  /** Number of hosts that the server calls as upstreams, which need open files too. */
  readonly upstreamHosts: number;
  /** Number of open files to reserve, besides those for connections and callers' upstreams. Default: 0. */
  readonly reservedFiles?: number;
  readonly log: Logger;
  /** Adds the endpoints of the service. */
  routes(app: Express, inFlight: InFlight, bodies: JsonBodies): void;
  /** Answers a request with an error. Never throws. Default: in JSON. */
  readonly answerError?: AnswerError;
  /** Receives the end of each request that an endpoint could have answered. */
  readonly onEnd?: ((end: RequestEnd) => void) | undefined;
}

/**
 * Number of sockets that listen on a server's port. In each turn of its event loop, Node accepts one
 * connection from each. From a single socket, a server that is busy with its open connections would
 * accept only some twenty new ones a second, so that other callers would wait for seconds. Only Linux
 * distributes connections among sockets.
 */
const LISTENERS = process.platform === 'linux' ? 8 : 1;

/** The parts of a server that last until its end. */
interface ServerState {
  readonly connections: Connections;
  /** The other servers that listen on the port, and pass their connections to this one. */
  readonly listeners: TcpServer[];
  /** Stops the timers. */
  stop(): void;
}

const stateByServer = new WeakMap<Server, ServerState>();

/** Creates an HTTP server, which does not listen yet. @throws ConfigError */
export function createHttpServer(parts: HttpServerParts): Server {
  const { limits, log, routes, answerError: answerWith = answerError } = parts;
  const { routePaths, trustedProxies } = parts;
  const cors = new CorsPolicy(parts.corsOrigins, parts.exposedHeaders);
  const maxConnections = allowedConnections(
    limits.maxConnections,
    parts.upstreamHosts,
    log,
    parts.reservedFiles,
  );
  const connections = new Connections(maxConnections);
  const inFlightLimits = {
    timeoutMs: limits.requestTimeoutMs,
    maxRunning: limits.maxConcurrentRequests,
    maxWaiting: Math.floor(maxConnections / 4),
  };
  const inFlight = new InFlight(log, connections, inFlightLimits, parts.onEnd);
  const bodies = new JsonBodies(limits.bodyLimitBytes, limits.requestTimeoutMs);
  const refusals = new Refusals(parts.slotEndpoints ?? [], { inFlight, cors });
  const app = createApp({
    cors,
    routePaths,
    trustedProxies,
    inFlight,
    bodies,
    answerError: answerWith,
    routes: (app) => routes(app, inFlight, bodies),
  });
  const server = createServer({
    IncomingMessage: withPrototype(createRequestClass(connections), app.request),
    ServerResponse: withPrototype(ServerResponse, app.response),
    // Other upgrades are ignored and the request is answered (RFC 9110, section 7.8).
    shouldUpgradeCallback: ({ socket }) => connections.isFull(socket),
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // Within the bounds of the settings, this is one second. Tests have shorter time limits.
    connectionsCheckingInterval: Math.min(1000, limits.requestTimeoutMs),
    maxHeaderSize: 16 * 1024,
    // app.ts checks the header and answers with JSON.
    requireHostHeader: false,
  });
  // A peer that is silent for longer than any request may take is considered gone.
  server.setTimeout(2 * limits.requestTimeoutMs + KEEP_ALIVE_TIMEOUT_MS);
  server.on('connection', (socket) => connections.addConnection(socket));
  stateByServer.set(server, {
    connections,
    listeners: [],
    stop() {
      inFlight.stop();
      bodies.stop();
    },
  });
  const listener = createListener(app, { inFlight, refusals, answerError: answerWith });
  server.on('request', listener);
  // An expectation other than 100-continue may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', listener);
  server.on('clientError', (error, socket) => {
    // The client would take a second answer for the answer to its next request.
    if (connections.isAnswered(socket)) endInSilence(socket);
    else logRefusal(log, socket, onClientError(error, socket, connections.pendingOn(socket)));
  });
  server.on('connect', (_request, socket) => {
    logRefusal(log, socket, refuseConnect(socket, connections.pendingOn(socket)));
  });
  return server;
}

/** Logs a request that Node did not parse, or does not hand over as a request. */
function logRefusal(log: Logger, socket: Duplex, refusal: ServerError | undefined): void {
  // Browsers open connections in advance, and may never send a request there.
  if (refusal === undefined || !(socket instanceof Socket) || socket.bytesRead === 0) return;
  log.info({ route: null, status: refusal.status, code: refusal.code }, 'request');
}

/**
 * Returns a class whose instances have Express' prototype from the start, so that Express need not change it.
 * A change would make all later accesses to their properties slow, and cost as much as Express' routing.
 */
function withPrototype<Message extends typeof IncomingMessage | typeof ServerResponse>(
  message: Message,
  prototype: object,
): Message {
  function create(...parameters: unknown[]): object {
    return Reflect.construct(message, parameters, create);
  }
  create.prototype = prototype;
  // V8 reserves room for properties according to the classes that a class inherits from.
  Object.setPrototypeOf(create, message);
  return create as unknown as Message;
}

/**
 * Makes the server listen at an address.
 *
 * @param setting name of the variable that sets the port
 * @returns the server's URL
 * @throws ConfigError if the address can't be listened on
 */
export async function listen(
  server: Server,
  { host, port, maxConnections }: Address & Pick<Limits, 'maxConnections'>,
  setting = 'PORT',
): Promise<string> {
  const shared = { backlog: maxConnections, reusePort: LISTENERS > 1 };
  try {
    if (port !== 0) await requireFreePort({ host, port });
    const { address, family, port: boundPort } = await startListening(server, { host, port, ...shared });
    for (let count = 1; count < LISTENERS; count++) {
      const listener = createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
        server.emit('connection', socket),
      );
      await startListening(listener, { host: address, port: boundPort, ...shared });
      stateByServer.get(server)?.listeners.push(listener);
    }
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${boundPort}`;
  } catch (error) {
    await shutDown(server, 0);
    const code = codeOf(error);
    const remedy =
      code === 'EADDRINUSE' ? ` (another process listens there): set ${setting} to another port` : '';
    throw new ConfigError(
      `can't listen on HOST ${host} and ${setting} ${port}: ${code ?? 'unknown error'}${remedy}`,
      { cause: error },
    );
  }
}

/**
 * Requires that no process listens on the port. If another process shared the port, it would get a part of
 * the connections.
 */
async function requireFreePort(address: ListenOptions): Promise<void> {
  const probe = createTcpServer();
  await startListening(probe, address);
  await close(probe);
}

function startListening(server: TcpServer, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => resolve(server.address() as AddressInfo));
  });
}

/** Refuses new connections, and waits until the open connections have ended. */
function close(server: TcpServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/**
 * Refuses new connections, and waits for the requests in flight. After `graceMs` milliseconds, closes all
 * connections.
 */
export async function shutDown(server: Server, graceMs: number): Promise<void> {
  const state = stateByServer.get(server);
  // Without this timer, a connection would stay open for another request after its last answer. A connection
  // without requests, which browsers open in advance, would stay open too: Node no longer checks for slow
  // headers.
  const idle = setInterval(() => {
    server.closeIdleConnections();
    state?.connections.closeUnused();
  }, 50);
  const grace = setTimeout(() => state?.connections.closeAll(), graceMs);
  await Promise.all([server, ...(state?.listeners ?? [])].map(close));
  clearInterval(idle);
  clearTimeout(grace);
  state?.stop();
}
