/** How a server of the benchmark, a process of its own, announces where it listens. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export function announce(origin: string): void {
  process.send?.({ origin });
  // The benchmark has ended without stopping it.
  process.on('disconnect', () => process.exit());
}

/** On a free port of 127.0.0.1, or of the address `HOST` on loopback. */
export function listenAndAnnounce(server: Server): void {
  const host = process.env['HOST'] ?? '127.0.0.1';
  server.listen(0, host, () => announce(`http://${host}:${(server.address() as AddressInfo).port}`));
}
