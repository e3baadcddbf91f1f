import type { Socket } from 'node:net';

/** Waits until a connection is closed. A reset counts too, at which `once` would reject. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}
