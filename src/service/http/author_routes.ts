/** An application's own Express router, under its prefix and within the server's limits. */
import express, { type Express, type Request, type Response, type Router } from 'express';
import { ConfigError } from 'sui-enclave/errors';
import { configure, endpointsOf } from './app.ts';
import type { InFlight } from './in_flight.ts';
import type { JsonBodies } from './json_body.ts';
import { setAddedHeaders } from './respond.ts';

/** A router, and the fixed path below which it answers. */
export interface MountedRouter {
  readonly prefix: string;
  readonly router: Router;
}

export interface RoutesParts {
  readonly inFlight: InFlight;
  readonly bodies: JsonBodies;
  readonly trustedProxies: number;
  /** Called for each request. @throws what refuses it */
  admit(): void;
}

/**
 * Mounts the router after the endpoints that `app` has so far. It gets an Express application of its own, so that it can't
 * change the server's.
 *
 * @throws ConfigError if the prefix is not a fixed path, or that of an endpoint
 */
export function mountRoutes(app: Express, { prefix, router }: MountedRouter, parts: RoutesParts): void {
  requirePrefix(app, prefix);
  const own = express();
  configure(own, parts);
  own.use(router);
  const { inFlight, bodies, admit } = parts;
  app.use(prefix, async (request, response, next) => {
    admit();
    request.body = await readBody(request, bodies);
    await inFlight.work(response, async () => {
      const closed = new Promise((resolve) => response.once('close', resolve));
      setAddedHeaders(response);
      own(request, response, (error: unknown) => {
        giveBack(app, request, response);
        next(error);
      });
      await closed;
    });
  });
}

function requirePrefix(app: Express, prefix: string): void {
  if (!/^(\/[A-Za-z0-9_.-]+)+$/.test(prefix)) {
    throw new ConfigError(
      `the prefix of the application's routes must be a fixed path such as /x, not ${prefix}`,
    );
  }
  const taken = endpointsOf(app).find(({ path }) => path === prefix || path.startsWith(`${prefix}/`));
  if (taken)
    throw new ConfigError(
      `the prefix ${prefix} of the application's routes contains the endpoint ${taken.path}`,
    );
}

async function readBody(request: Request, bodies: JsonBodies): Promise<Buffer> {
  if (request.method === 'GET' || request.method === 'HEAD') return Buffer.alloc(0);
  return await bodies.readAny(request);
}

/** Express changes the prototypes of a request that enters another application, and leaves them so. */
function giveBack(app: Express, request: Request, response: Response): void {
  Object.setPrototypeOf(request, app.request);
  Object.setPrototypeOf(response, app.response);
}
