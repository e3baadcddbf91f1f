import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Express } from 'express';
import { type Connections, createRequestClass } from './connections.ts';

export interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
}

/**
 * The classes of a server's requests and responses. Express replaces the prototype of each by its own, which makes all
 * later accesses to their properties slow. These have Express' prototypes from the start.
 */
export function createMessageClasses(app: Express, connections: Connections): MessageClasses {
  const Request = createRequestClass(connections);
  class Response extends ServerResponse {}
  Object.setPrototypeOf(Request.prototype, app.request);
  Object.setPrototypeOf(Response.prototype, app.response);
  app.request = Request.prototype as Express['request'];
  app.response = Response.prototype as unknown as Express['response'];
  return { IncomingMessage: Request, ServerResponse: Response as typeof ServerResponse };
}
