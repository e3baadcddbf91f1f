/** Announces the address of a benchmark's server, which is a process of its own. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export function announce(origin: string): void {
  process.send?.({ origin });
  // The benchmark has ended without stopping this server.
  process.on('disconnect', () => process.exit());
}

/** Listens on a free port of 127.0.0.1, or of the loopback address `HOST`, and announces it. */
export function listenAndAnnounce(server: Server): void {
  const host = process.env['HOST'] ?? '127.0.0.1';
  server.listen(0, host, () => announce(`http://${host}:${(server.address() as AddressInfo).port}`));
}
