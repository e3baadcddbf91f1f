/**
 * Refuses requests while all slots are taken, before Express routes them and before their bodies are read.
 * Refusals must be cheap: under overload, they take time that the accepted requests need.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { CorsPolicy } from './cors.ts';
import { prepareAnswer } from './errors.ts';
import type { InFlight } from './in_flight.ts';
import { atEndOfTurn } from './respond.ts';

export interface SlotEndpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
}

export interface RefusalsParts {
  readonly inFlight: InFlight;
  readonly cors: CorsPolicy;
}

export class Refusals {
  readonly #inFlight: InFlight;
  readonly #cors: CorsPolicy;
  /** The endpoints by path. */
  readonly #endpoints: ReadonlyMap<string, SlotEndpoint>;
  readonly #answer: (response: ServerResponse) => void;

  /**
   * @param endpoints endpoints that only read and check the request before they call `InFlight.work`. Their
   *   errors are answered by `answerError`
   */
  constructor(endpoints: readonly SlotEndpoint[], { inFlight, cors }: RefusalsParts) {
    this.#inFlight = inFlight;
    this.#cors = cors;
    this.#endpoints = new Map(endpoints.map(({ method, path }) => [path, { method, path }]));
    this.#answer = prepareAnswer(inFlight.createRefusal());
  }

  /**
   * Takes a request that would be refused. If its body does not arrive in the current turn of the event loop,
   * or a slot becomes free, the request is handled after all.
   *
   * @returns whether the request was taken
   */
  take(request: IncomingMessage, response: ServerResponse, handle: RequestListener): boolean {
    if (!this.#inFlight.isFull) return false;
    const { method, url = '' } = request;
    const query = url.indexOf('?');
    const endpoint = this.#endpoints.get(query === -1 ? url : url.slice(0, query));
    if (!endpoint || endpoint.method !== method || !this.#isAdmitted(request)) return false;
    atEndOfTurn(() => {
      if (request.socket.destroyed) return;
      if (!this.#inFlight.isFull || !request.complete) handle(request, response);
      else if (!response.headersSent) this.#refuse(request, response, endpoint);
    });
    return true;
  }

  /** Returns whether the policy admits the request. If not, the usual handler answers with the reason. */
  #isAdmitted(request: IncomingMessage): boolean {
    try {
      this.#cors.requireAdmission(request);
      return true;
    } catch {
      return false;
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, route: SlotEndpoint): void {
    // The log reads the path from Express' property.
    Object.assign(request, { route });
    this.#cors.addHeaders(request, response);
    this.#answer(response);
  }
}
