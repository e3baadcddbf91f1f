/** Many simultaneous callers, over raw sockets. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Flood {
  /** Counts the callers that have an answer with this status. */
  answered(status: number): number;
  /** Closes the connections of all callers. */
  leave(): void;
}

/**
 * Opens a connection for each of the `requests`, sends the request, and keeps the connection open until the
 * test ends.
 */
export async function flood(url: string, requests: readonly string[]): Promise<Flood> {
  const port = Number(new URL(url).port);
  const sockets: Socket[] = [];
  const firstChunks = new Map<Socket, string>();
  const leave = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(leave);
  for (const [index, request] of requests.entries()) {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.on('error', () => {});
    socket.once('data', (chunk) => firstChunks.set(socket, chunk.toString('latin1')));
    sockets.push(socket);
    // The connections are opened in groups of 16, which exceed neither the system's queue of new connections
    // nor the slots of a small server.
    if (index % 16 === 15) await once(socket, 'connect');
  }
  return {
    leave,
    answered: (status) =>
      [...firstChunks.values()].filter((answer) => answer.startsWith(`HTTP/1.1 ${status} `)).length,
  };
}

export const getRequest = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

export function postRequest(path: string, body: unknown): string {
  const json = JSON.stringify(body);
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json`;
  return `${head}\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`;
}
