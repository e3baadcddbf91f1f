/**
 * Runs an application's own handlers of Express within the server's limits: its router, and the handlers
 * before its endpoints.
 */
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express';
import { ConfigError } from 'sui-enclave/errors';
import { configure, listEndpoints } from './app.ts';
import type { RoutePaths } from './cors.ts';
import type { InFlight } from './in_flight.ts';
import { hasBody, type JsonBodies } from './json_body.ts';
import { makeReadableAgain } from './readable_again.ts';
import { JsonText, setAddedHeaders } from './respond.ts';
import { asRefusal } from './route_errors.ts';
import { methodsAt } from './route_methods.ts';

/** A router, and the fixed path below which it answers. */
export interface MountedRouter {
  readonly prefix: string;
  readonly router: Router;
  /** 'own': the router answers preflights and sets the headers of CORS itself. */
  readonly cors?: 'own' | undefined;
}

export interface HandlerParts {
  readonly inFlight: InFlight;
  readonly bodies: JsonBodies;
  readonly trustedProxies: number;
  /** Removes secrets from a message for the caller. */
  redact(message: string): string;
}

export interface RoutesParts extends HandlerParts {
  /** Makes the application's handlers run before the router. */
  readonly guard: Guard;
  /** Called for each request. @throws the error that refuses it */
  admit(): void;
  /** Called for each answer that is JSON already, such as a signed one. @throws the error that refuses it */
  admitAnswer(answer: JsonText): void;
}

/** Makes the application's handlers run before a handler. */
export type Guard = (handler: RequestHandler) => RequestHandler;

/**
 * Creates a guard.
 *
 * @param before handlers that run first, in this order. If the list is empty, the guard changes nothing
 * @throws ConfigError if `before` is not a list of handlers
 */
export function createGuard(app: Express, before: readonly RequestHandler[], parts: HandlerParts): Guard {
  if (!Array.isArray(before) || before.some((handler) => typeof handler !== 'function')) {
    throw new ConfigError(
      'before must be a list of handlers of Express: functions of request, response and next',
    );
  }
  if (before.length === 0) return (handler) => handler;
  const run = createApplication(app, before, parts);
  const { inFlight } = parts;
  return (handler) => async (request, response, next) => {
    const readable = await readWhole(request, response, parts);
    await inFlight.work(
      response,
      () =>
        new Promise<void>((resolve, reject) => {
          response.once('close', resolve);
          const { url, baseUrl, params, route } = readable;
          Object.assign(readable, { url: readable.originalUrl, baseUrl: '' });
          run(readable, response, (error) => {
            Object.assign(readable, { url, baseUrl, params, route });
            if (error) reject(error);
            // Call the handler here, so that it keeps the context of the handlers before it, such as the
            // context of an AsyncLocalStorage.
            else callHandler(handler, readable, response, next).then(resolve, reject);
          });
        }),
    );
  };
}

async function callHandler(handler: RequestHandler, ...call: Parameters<RequestHandler>): Promise<void> {
  await handler(...call);
}

/**
 * Adds an application's router to the server.
 *
 * @throws ConfigError if the prefix is not a fixed path, or is the path of an endpoint, or if `cors` is
 *   unknown
 */
export function mountRoutes(app: Express, { prefix, router, cors }: MountedRouter, parts: RoutesParts): void {
  requirePrefix(app, prefix);
  if (cors !== undefined && cors !== 'own') {
    throw new ConfigError("cors of the application's routes must be 'own', or not set");
  }
  const run = createApplication(app, [router], parts);
  const { inFlight, guard, admit, admitAnswer } = parts;
  const handle: RequestHandler = async (request, response, next) => {
    admit();
    const readable = await readWhole(request, response, parts);
    await inFlight.work(response, async () => {
      const closed = new Promise((resolve) => response.once('close', resolve));
      sendSignedAsJson(response, admitAnswer);
      run(readable, response, next);
      await closed;
    });
  };
  app.use(prefix, guard(handle));
}

type Run = (request: Request, response: Response, next: NextFunction) => void;

/** Creates an Express application for handlers, so that they can't change the server's application. */
function createApplication(app: Express, handlers: readonly RequestHandler[], parts: HandlerParts): Run {
  const handlersApp = express();
  configure(handlersApp, parts);
  handlersApp.use(...handlers);
  return (request, response, next) => {
    setAddedHeaders(response);
    handlersApp(request, response, (error: unknown) => {
      restorePrototypes(app, request, response);
      if (error) removeContentHeaders(response);
      next(error && asRefusal(error, parts.redact));
    });
  };
}

function requirePrefix(app: Express, prefix: string): void {
  if (!/^(\/[A-Za-z0-9_.-]+)+$/.test(prefix)) {
    throw new ConfigError(
      `the prefix of the application's routes must be a fixed path such as /x, not ${prefix}`,
    );
  }
  const endpoint = listEndpoints(app).find(({ path }) => path === prefix || path.startsWith(`${prefix}/`));
  if (endpoint)
    throw new ConfigError(
      `the prefix ${prefix} of the application's routes contains the endpoint ${endpoint.path}`,
    );
}

/** Returns the paths of an author's router, for CORS. */
export function findPaths({ prefix, router, cors }: MountedRouter): RoutePaths {
  const isBelow = (path: string) => path === prefix || path.startsWith(`${prefix}/`);
  return {
    setsCors: (path) => cors === 'own' && isBelow(path),
    methodsAt: (path) => (isBelow(path) ? methodsAt(router, path.slice(prefix.length) || '/') : undefined),
  };
}

/** Copies of requests that `readWhole` has made. */
const copies = new WeakSet<Request>();

/**
 * Reads a request's body within the server's limits, and returns a request whose body can be read again.
 *
 * @throws as `JsonBodies.readAny`
 */
async function readWhole(request: Request, response: Response, { bodies }: HandlerParts): Promise<Request> {
  const mayLackBody = request.method === 'GET' || request.method === 'HEAD';
  if (copies.has(request) || (mayLackBody && !hasBody(request))) return request;
  const copy = makeReadableAgain(request, response, await bodies.readAny(request));
  copies.add(copy);
  return copy;
}

/**
 * Restores the prototypes of a request and its response. Express changes them when a request enters another
 * application.
 */
function restorePrototypes(app: Express, request: Request, response: Response): void {
  Object.setPrototypeOf(request, app.request);
  Object.setPrototypeOf(response, app.response);
}

/** Makes `json` and `send` pass on a signed answer, which is JSON already. */
function sendSignedAsJson(response: Response, admit: (answer: JsonText) => void): void {
  const { json } = response;
  response.json = (value) => {
    if (!(value instanceof JsonText)) return json.call(response, value);
    admit(value);
    for (let at = 0; at < value.headers.length; at += 2) {
      response.setHeader(value.headers[at] as string, value.headers[at + 1] as string);
    }
    if (!response.get('content-type')) response.type('json');
    return response.send(value.json);
  };
}

/**
 * Headers about the content that an error replaces. `Content-Range` is not among them: in an answer with
 * status 416, it gives the size of the content that lacks the requested range.
 */
const CONTENT_HEADERS = [
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-language',
  'etag',
  'last-modified',
];

function removeContentHeaders(response: Response): void {
  if (response.headersSent) return;
  for (const name of CONTENT_HEADERS) response.removeHeader(name);
}
