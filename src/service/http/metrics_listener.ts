/**
 * Serves metrics for Prometheus on loopback, over a separate listener. The listener has one path, accepts few
 * connections, and reads only the head of a request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ConfigError } from 'sui-enclave/errors';
import { BoundedRequest } from './body_pieces.ts';
import { discardBody } from './json_body.ts';

/** Metrics as one text. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

export interface MetricsListener {
  readonly url: string;
  close(): void;
}

export interface MetricsListenerOptions {
  /** The port. With 0, the system chooses a free port (for tests). */
  readonly port: number;
  /** Returns the metrics. Called for each request. */
  expose(): Exposition | Promise<Exposition>;
  /** The variable that sets the port. Default: METRICS_PORT. */
  readonly setting?: string;
  /** Age in milliseconds at which a connection ends, whatever its peer does. Default: 5000. */
  readonly maxAgeMs?: number;
}

/**
 * Maximum number of connections. One or two are enough for any reader. A further connection replaces the
 * oldest, so that idle connections do not block new ones.
 */
const MAX_CONNECTIONS = 16;

/** Starts the listener. @throws ConfigError if it can't listen on the port */
export async function serveMetrics(options: MetricsListenerOptions): Promise<MetricsListener> {
  const { port, expose, setting = 'METRICS_PORT', maxAgeMs = 5000 } = options;
  const http = { IncomingMessage: BoundedRequest, maxHeaderSize: 4096, keepAlive: false };
  const server = createServer(http, (request, response) => {
    answer(request, response, expose).catch(() => request.socket.destroy());
  });
  // Connections in the order of their arrival.
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    const [oldest] = open;
    if (oldest && open.size >= MAX_CONNECTIONS) {
      // The socket's `close` event comes later.
      open.delete(oldest);
      oldest.destroy();
    }
    open.add(socket);
    const ageTimer = setTimeout(() => socket.destroy(), maxAgeMs).unref();
    socket.once('close', () => {
      open.delete(socket);
      clearTimeout(ageTimer);
    });
  });
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`can't listen on 127.0.0.1 and ${setting} ${port}: ${code ?? 'unknown error'}`, {
      cause,
    });
  }
  server.unref();
  const { port: boundPort } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${boundPort}/metrics`, close };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  expose: MetricsListenerOptions['expose'],
): Promise<void> {
  const { method, url } = request;
  discardBody(request);
  // The unread rest of a request would be parsed as the next request.
  response.shouldKeepAlive = false;
  if (url !== '/metrics') return void response.writeHead(404).end();
  if (method !== 'GET') return void response.writeHead(405, { allow: 'GET' }).end();
  const { contentType, text } = await expose();
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(text);
}
