/** Hosts on loopback for the tests of upstreams, with a client for each. They end with the test. */
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { createUpstream, type UpstreamBounds } from '../../../src/service/upstream.ts';
import { listen } from '../library/loopback.ts';

const BOUNDS: UpstreamBounds = { timeoutMs: 5000, maxSize: 2000 };

/** Options that make a client return any answer unchanged. */
export const RAW = { validateStatus: null, responseType: 'arraybuffer' } as const;

export { listen };

/** Starts an HTTP host with this listener, and makes a client for it. */
export async function host(answer: RequestListener, bounds: UpstreamBounds = BOUNDS) {
  let connections = 0;
  const server = createServer(answer).on('connection', () => connections++);
  const origin = `http://127.0.0.1:${await listen(server)}`;
  return { origin, client: createUpstream(origin)(bounds), connections: () => connections };
}

export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Starts a host that answers with the request. */
export async function echo(bounds?: UpstreamBounds) {
  return await host(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method, url, headers } = request;
    response.end(JSON.stringify({ method, url, headers, body }));
  }, bounds);
}

/**
 * Starts a TCP host, and makes a client for it.
 *
 * @param answer called for each chunk that a connection receives, with the number of that chunk from 1
 */
export async function rawHost(
  answer: (socket: Socket, nth: number) => void,
  bounds: UpstreamBounds = BOUNDS,
) {
  let connections = 0;
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    connections++;
    let chunkCount = 0;
    open.add(socket.on('error', () => {}).on('close', () => open.delete(socket)));
    socket.on('data', () => answer(socket, ++chunkCount));
  });
  const client = createUpstream(`http://127.0.0.1:${await listen(server)}`)(bounds);
  return { client, connections: () => connections, open: () => open.size };
}
