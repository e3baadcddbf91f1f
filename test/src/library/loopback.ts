/** Servers on loopback, until the test ends. */
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** @returns the port */
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

/** @returns the URL of an HTTP server, without a path */
export async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}`;
}

/** A server of raw TCP. @param answer is called with each piece that a connection receives */
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
