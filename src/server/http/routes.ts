/** Finds the handler of a request. Every path is fixed, so a map does what a router would, at a fraction of its cost. */
import type { IncomingMessage } from 'node:http';
import { type ParsedUrlQuery, parse } from 'node:querystring';
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { ConfigError } from '../../errors.ts';
import { ServerError } from '../errors.ts';
import { cors } from './cors.ts';
import { methodNotAllowed, notFound } from './errors.ts';

export interface Route {
  readonly path: string;
  /** A GET route also answers HEAD. */
  readonly method: 'GET' | 'POST';
  /** Answers the request. An error, thrown or rejected, is answered by the server. */
  handle(request: Request, response: Response): Promise<void> | void;
}

export const get = (path: string, handle: Route['handle']): Route => ({ path, method: 'GET', handle });
export const post = (path: string, handle: Route['handle']): Route => ({ path, method: 'POST', handle });

/** All parameters: by default, Node would drop those after the thousandth. */
export const readQuery = (query: string): ParsedUrlQuery => parse(query, '&', '=', { maxKeys: 0 });

export interface AppOptions {
  /** The origins whose pages may read answers. */
  readonly corsOrigins: '*' | readonly string[];
  /** Number of trusted proxies in front, for `request.ip`. */
  readonly trustedProxies: number;
}

/** @throws ConfigError if two routes have the same path */
export function createApp(routes: readonly Route[], { corsOrigins, trustedProxies }: AppOptions): Express {
  const byPath = new Map<string, Route>();
  for (const route of routes) {
    if (byPath.has(route.path)) throw new ConfigError(`the endpoint ${route.path} is defined twice`);
    byPath.set(route.path, route);
  }
  const app = express();
  // In other environments, Express answers an error in its own error handling with the stack.
  app.set('env', 'production');
  app.disable('x-powered-by');
  app.set('query parser', readQuery);
  app.set('trust proxy', trustedProxies);
  const withCors = cors(corsOrigins);
  const handle: RequestHandler = (request, response, next) => {
    requireHost(request);
    withCors(request, response, () => dispatch(byPath, request, response, next));
  };
  // In place of Express' own router, which would parse, cut and restore the path for each layer, and cost as much as
  // all that is done here.
  Object.defineProperty(app, 'router', { value: { handle } });
  return app;
}

function dispatch(
  routes: ReadonlyMap<string, Route>,
  request: Request,
  response: Response,
  next: NextFunction,
): void {
  const { url } = request;
  const query = url.indexOf('?');
  const route = routes.get(query === -1 ? url : url.slice(0, query));
  if (!route) {
    notFound(request, response, next);
    return;
  }
  // For the log.
  request.route = route;
  const isSupported =
    route.method === request.method || (route.method === 'GET' && request.method === 'HEAD');
  if (isSupported) route.handle(request, response)?.catch(next);
  else methodNotAllowed(route.method === 'GET' ? 'GET, HEAD' : 'POST')(request, response, next);
}

/** RFC 9112, section 3.2. */
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
