import type { RequestHandler } from 'express';

const METHODS = 'GET, HEAD, POST';
const EXPOSED_HEADERS = 'x-request-id, retry-after';
/** How long a browser may keep the answer to a preflight. */
const MAX_AGE_SECONDS = '600';

/**
 * Lets pages of these origins read answers (Fetch Standard, "CORS protocol"), never with credentials, and
 * answers their preflights. (The package `cors` works its headers out anew for each request, which costs a
 * sixth of one here; the policy is fixed, so the headers are too.)
 */
export function cors(origins: '*' | readonly string[]): RequestHandler {
  return (request, response, next) => {
    const { origin } = request.headers;
    const allowed = origins === '*' || (origin !== undefined && origins.includes(origin));
    // A cache must not hand one origin's answer to another.
    if (origins !== '*') response.setHeader('vary', 'Origin');
    if (allowed) {
      response.setHeader('access-control-allow-origin', origins === '*' ? '*' : (origin as string));
      response.setHeader('access-control-expose-headers', EXPOSED_HEADERS);
    }
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      next();
      return;
    }
    if (allowed) {
      response.setHeader('access-control-allow-methods', METHODS);
      // Any header: none of them means anything here, and a front end may add its own (tracing, for one).
      const asked = request.headers['access-control-request-headers'];
      if (asked !== undefined) response.setHeader('access-control-allow-headers', asked);
      response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
    }
    response.writeHead(204).end();
  };
}
