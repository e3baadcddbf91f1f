import { type Ports, portsFrom, requireFree } from '../../../../../src/toolchain/dev/wallet/ports.ts';

/** Finds five consecutive free ports, below those from which the system chooses. */
export async function findFreePorts(): Promise<Ports> {
  for (;;) {
    const ports = portsFrom(20_000 + Math.floor(Math.random() * 2000) * 5);
    const isFree = await requireFree(ports).then(
      () => true,
      () => false,
    );
    if (isFree) return ports;
  }
}
