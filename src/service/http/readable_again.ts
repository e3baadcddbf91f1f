/**
 * Copies a request whose body the server has read, so that Express' body parsers and streams can read it
 * again.
 */
import { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';

/** Properties that Node and Express have set by the time that a handler runs. */
const COPIED = [
  'httpVersion',
  'httpVersionMajor',
  'httpVersionMinor',
  'rawHeaders',
  'rawTrailers',
  'headers',
  'trailers',
  'method',
  'url',
  'originalUrl',
  'baseUrl',
  'params',
  'route',
  'res',
  'next',
] as const satisfies readonly (keyof Request)[];

/**
 * Returns a request like this one, on the same socket, whose stream begins anew with the body. (`unshift`
 * can't give a body back to a stream that has ended.)
 *
 * @param body the whole body
 */
export function makeReadableAgain(request: Request, response: Response, body: Buffer): Request {
  const again = new IncomingMessage(request.socket) as Request;
  Object.setPrototypeOf(again, Object.getPrototypeOf(request));
  for (const name of COPIED) Object.assign(again, { [name]: request[name] });
  if (body.length > 0) again.push(body);
  again.push(null);
  again.complete = true;
  shareRoute(request, again);
  response.once('close', () => endWith(again, response));
  return again;
}

/** The log reads the route of the first request when the answer ends. */
function shareRoute(request: Request, again: Request): void {
  Object.defineProperty(request, 'route', {
    configurable: true,
    get: () => again.route,
    set: (route) => {
      again.route = route;
    },
  });
}

/** Ends the copy of a request with its answer or its connection, as Node does. */
function endWith(request: IncomingMessage, response: Response): void {
  if (request.destroyed) return;
  if (response.writableFinished) {
    request.removeAllListeners('data');
    request.resume();
  } else request.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
}
