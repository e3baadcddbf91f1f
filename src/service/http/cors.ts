import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { ServerError } from '../errors.ts';
import { discardBody, hasBody } from './json_body.ts';
import { addHeader, writeHead } from './respond.ts';

const METHODS = ['GET', 'HEAD', 'POST'];
const EXPOSED_HEADERS = ['x-request-id', 'retry-after'];

/** The origins whose pages may read answers: a list, or in development an object that decides. */
export interface Origins {
  readonly length?: number;
  includes(origin: string): boolean;
  /** Returns whether a development server answers the request. Default: it answers every request. */
  admits?(request: IncomingMessage): boolean;
}

/** Paths of an application's own router. */
export interface RoutePaths {
  /** Returns whether the handlers of the path answer preflights, and set all headers of CORS, themselves. */
  setsCors(path: string): boolean;
  /** Returns the methods of a path in upper case; undefined for a path outside of the router. */
  methodsAt(path: string): readonly string[] | undefined;
}

/** Time for which a browser may keep the answer to a preflight, in seconds. */
const MAX_AGE_SECONDS = '600';

/**
 * Allows pages of these origins to read answers (Fetch Standard, "CORS protocol"), never with credentials.
 * (The package `cors` recomputes its headers for each request, which would take a sixth of the time of a
 * request here. The policy is fixed, so the headers are too.)
 */
export class CorsPolicy {
  readonly #origins: '*' | Origins;
  readonly #exposedHeaders: string;

  /** @param exposed the service's own headers that pages may read */
  constructor(origins: '*' | Origins, exposed: readonly string[] = []) {
    this.#origins = origins;
    this.#exposedHeaders = [...EXPOSED_HEADERS, ...exposed].join(', ');
  }

  /**
   * Checks that a development server may answer the request.
   *
   * @throws ServerError INVALID_INPUT for requests and pages of other machines
   */
  requireAdmission(request: IncomingMessage): void {
    if (this.#origins === '*' || this.#origins.admits?.(request) !== false) return;
    throw new ServerError(
      'INVALID_INPUT',
      'a development server on loopback answers only programs and pages of this machine: Host must be 127.0.0.1 or localhost, and Origin must be http at one of these, or listed in CORS_ORIGINS',
    );
  }

  /**
   * Adds the headers that CORS requires of every answer.
   *
   * @returns whether pages of the request's origin may read answers
   */
  addHeaders({ headers: { origin } }: IncomingMessage, response: ServerResponse): boolean {
    const origins = this.#origins;
    const allowed = origins === '*' || (origin !== undefined && origins.includes(origin));
    // A cache must not serve one origin's answer to another.
    if (origins !== '*') addHeader(response, 'vary', 'Origin');
    if (allowed) {
      addHeader(response, 'access-control-allow-origin', origins === '*' ? '*' : (origin as string));
      addHeader(response, 'access-control-expose-headers', this.#exposedHeaders);
    }
    return allowed;
  }
}

/** Creates the handler that adds the policy's headers to answers, and answers preflights. */
export function cors(policy: CorsPolicy, routes?: RoutePaths): RequestHandler {
  return (request, response, next) => {
    policy.requireAdmission(request);
    if (routes?.setsCors(request.path)) {
      next();
      return;
    }
    const allowed = policy.addHeaders(request, response);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      next();
      return;
    }
    if (allowed) allowRequest(request, response, routes?.methodsAt(request.path) ?? METHODS);
    if (hasBody(request)) addHeader(response, 'connection', 'close');
    discardBody(request);
    writeHead(response, 204, []);
    response.end();
  };
}

/** Adds the headers by which a preflight allows the request that follows it. */
function allowRequest(request: Request, response: Response, methods: readonly string[]): void {
  addHeader(response, 'access-control-allow-methods', methods.join(', '));
  // Allow any header, since this server interprets none of them, and a front end may add its own, for example
  // for tracing.
  const headers = request.headers['access-control-request-headers'];
  if (headers !== undefined) addHeader(response, 'access-control-allow-headers', headers);
  addHeader(response, 'access-control-max-age', MAX_AGE_SECONDS);
}
