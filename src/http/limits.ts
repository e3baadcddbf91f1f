import type { RequestHandler } from 'express';
import { AnswerTimeout, Overloaded, RequestTimeout } from './errors.ts';

/**
 * Takes at most `max` requests at a time and answers 503 beyond: what can't be served soon is refused at
 * once. There is no limit by address, since behind the enclave's bridge every peer is 127.0.0.1.
 */
export function limitConcurrency(max: number): RequestHandler {
  let inFlight = 0;
  return (_request, response, next) => {
    if (inFlight >= max) {
      next(new Overloaded(`the server is busy with ${max} requests: try again`));
      return;
    }
    inFlight += 1;
    response.once('close', () => {
      inFlight -= 1;
    });
    next();
  };
}

/** Ends a request that did not arrive, or was not answered, `ms` milliseconds after its headers. */
export function limitTime(ms: number): RequestHandler {
  return (request, response, next) => {
    const timer = setTimeout(() => {
      if (response.headersSent) return;
      if (request.complete) {
        next(new AnswerTimeout(`no answer within ${ms} ms`));
        return;
      }
      // The rest of the body would be taken for the next request.
      response.setHeader('connection', 'close');
      next(new RequestTimeout(`the request did not arrive within ${ms} ms`));
    }, ms);
    response.once('close', () => clearTimeout(timer));
    next();
  };
}
