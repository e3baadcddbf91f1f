/** Servers on loopback, which end with the test. */
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a server. @returns its port */
export async function listen(server: Server, address = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, address, resolve);
  });
  onTestFinished(() => {
    if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Starts an HTTP server. @returns its URL, without a path */
export async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}`;
}

/** Starts a server of raw TCP. @param answer is called with each piece that a connection receives */
export async function serveRaw(answer: (socket: Socket, piece: Buffer) => void) {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket.on('error', () => {}).on('data', (piece) => answer(socket, piece as Buffer)));
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, sockets };
}
