import type { Socket } from 'node:net';

/** Waits until a connection is closed. A reset counts too, though `once` would reject at a reset. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}
