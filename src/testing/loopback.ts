/**
 * Restricts the development servers, which protect nothing, to programs and pages of this machine. Refuses
 * pages of other sites, whether they use their own origin or a name that resolves to this machine (DNS
 * rebinding).
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { quantity } from 'sui-enclave/wording';
import type { Origins } from 'sui-enclave-service/http/cors';

const NAME = String.raw`(127\.0\.0\.1|localhost|\[::1\])`;
const HOST = new RegExp(`^${NAME}(:[0-9]{1,5})?$`, 'i');
const ORIGIN = new RegExp(`^http://${NAME}(:[0-9]{1,5})?$`);

const REFUSAL =
  'This development server answers only programs and pages of this machine: call it at 127.0.0.1 or localhost, from a page that has http at one of these as its origin.\n';

export const isLoopbackOrigin = (origin: string): boolean => ORIGIN.test(origin);

/** @param address on which a server listens */
export const isLoopback = (address: string): boolean => ['127.0.0.1', 'localhost', '::1'].includes(address);

/**
 * Returns whether a request names a loopback host. If a page sent it, `includes` must accept the page's
 * origin too.
 *
 * @param fakedHost host that the server imitates. Through a proxy, programs send requests under this name too
 */
export function comesFromHere(
  { headers: { host, origin } }: Pick<IncomingMessage, 'headers'>,
  includes: (origin: string) => boolean = isLoopbackOrigin,
  fakedHost?: string,
): boolean {
  // Only HTTP/1.0 has no Host, and no browser sends HTTP/1.0.
  const isOwnHost = host === undefined || host === fakedHost || HOST.test(host);
  return isOwnHost && (origin === undefined || includes(origin));
}

/** Rule that replaces a list of origins, for services that are made for production. */
export const LOOPBACK_ORIGINS = {
  includes: isLoopbackOrigin,
  admits: (request: IncomingMessage) => comesFromHere(request),
} satisfies Origins;

/**
 * Returns the origins that such a service accepts when it listens on loopback.
 *
 * @param isSet whether the developer has set the origins. If not, `*` means every loopback origin
 */
export function originsOnLoopback(configured: '*' | Origins, isSet: boolean): '*' | Origins {
  if (configured === '*') return isSet ? '*' : LOOPBACK_ORIGINS;
  const includes = (origin: string) => configured.includes(origin);
  const isAccepted = (origin: string) => isLoopbackOrigin(origin) || includes(origin);
  return {
    ...(configured.length !== undefined && { length: configured.length }),
    includes,
    admits: (request) => comesFromHere(request, isAccepted),
  };
}

/**
 * Listens on 127.0.0.1, and answers requests from elsewhere with 403. All development servers use this
 * function to listen.
 *
 * @param port to listen on; with 0, the system chooses
 * @param fakedHost see `comesFromHere`
 * @returns the origin; rejects with Node's error
 */
export async function serveLoopback(server: Server, port = 0, fakedHost?: string): Promise<string> {
  const listeners = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!comesFromHere(request, isLoopbackOrigin, fakedHost)) return refuse(response, 403, REFUSAL);
    for (const listener of listeners) listener(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * Allows a page of this machine to read the answer to its request, and answers the page's preflight.
 *
 * @returns whether the request was a preflight, which is answered
 */
export function answersPreflight(
  { method, headers: { origin } }: IncomingMessage,
  response: ServerResponse,
): boolean {
  response.setHeader('vary', 'Origin');
  if (origin !== undefined && isLoopbackOrigin(origin)) {
    response.setHeader('access-control-allow-origin', origin).setHeader('access-control-allow-headers', '*');
  }
  if (method !== 'OPTIONS') return false;
  response.writeHead(204).end();
  return true;
}

/**
 * Reads the body of a request into memory.
 *
 * @param maxBytes maximum size of the body
 * @returns null if the body is larger, after answering 413; the rest of the body is not read
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  // The end of the loop must not end the connection, since the answer still has to be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= maxBytes) continue;
    refuse(response, 413, `The body has more than ${quantity(maxBytes, 'byte')}.\n`);
    return null;
  }
  return Buffer.concat(chunks);
}

/** Refuses a request and ends the connection. Otherwise, Node would read the whole body. */
function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(text);
}
