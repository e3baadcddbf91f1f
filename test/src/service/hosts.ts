/** Hosts on loopback for the tests of upstreams, with a client for each. They end with the test. */
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { createUpstream, type UpstreamBounds } from '../../../src/service/upstream.ts';
import { listen } from '../library/loopback.ts';

const BOUNDS: UpstreamBounds = { timeoutMs: 5000, maxSize: 2000 };

/** Options with which a client returns an answer unchanged. */
export const RAW = { validateStatus: null, responseType: 'arraybuffer' } as const;

export { listen };

/** Starts a host that answers in this way. */
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

/** Starts a host of raw TCP that answers in this way to the nth data of a connection. */
export async function rawHost(
  answer: (socket: Socket, nth: number) => void,
  bounds: UpstreamBounds = BOUNDS,
) {
  let connections = 0;
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    connections++;
    let received = 0;
    open.add(socket.on('error', () => {}).on('close', () => open.delete(socket)));
    socket.on('data', () => answer(socket, ++received));
  });
  const client = createUpstream(`http://127.0.0.1:${await listen(server)}`)(bounds);
  return { client, connections: () => connections, open: () => open.size };
}
