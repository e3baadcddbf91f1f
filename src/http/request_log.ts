import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { Logger } from '../log.ts';

/**
 * Gives each request an id of ours (header `x-request-id`) and prints one line when it ends. Of a request
 * only the method and the route are printed: paths, queries and bodies are the caller's and may hold
 * anything.
 */
export function requestLog(log: Logger): RequestHandler {
  return (request, response, next) => {
    const id = randomUUID();
    const start = performance.now();
    response.setHeader('x-request-id', id);
    response.locals['log'] = () => log.child({ request_id: id });
    response.once('close', () => {
      log.info(
        {
          request_id: id,
          method: request.method,
          route: request.route?.path ?? null,
          status: response.statusCode,
          complete: response.writableFinished,
          ms: Math.round((performance.now() - start) * 10) / 10,
        },
        'request',
      );
    });
    next();
  };
}

/** The log of the request that this response answers, with its id. */
export function logOf(response: Response): Logger {
  return response.locals['log']();
}
