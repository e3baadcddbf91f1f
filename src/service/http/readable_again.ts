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
 * Returns a copy of the request on the same socket, from which the body can be read again. (`unshift`
 * can't give a body back to a stream that has ended.)
 *
 * @param body the whole body
 */
export function makeReadableAgain(request: Request, response: Response, body: Buffer): Request {
  const copy = new IncomingMessage(request.socket) as Request;
  Object.setPrototypeOf(copy, Object.getPrototypeOf(request));
  for (const name of COPIED) Object.assign(copy, { [name]: request[name] });
  if (body.length > 0) copy.push(body);
  copy.push(null);
  copy.complete = true;
  shareRoute(request, copy);
  response.once('close', () => endWith(copy, response));
  return copy;
}

/** Makes the request show the route of its copy, since the log reads it there when the answer ends. */
function shareRoute(request: Request, copy: Request): void {
  Object.defineProperty(request, 'route', {
    configurable: true,
    get: () => copy.route,
    set: (route) => {
      copy.route = route;
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
