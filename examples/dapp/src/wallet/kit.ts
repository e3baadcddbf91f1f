/** dapp-kit: the wallets of the page, and its client of Sui. */
import { createDAppKit } from '@mysten/dapp-kit-react';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Settings } from '../settings.ts';

export function createKit({ sui: { network, nodeUrl } }: Settings) {
  return createDAppKit({
    networks: [network],
    createClient: () => new SuiGrpcClient({ network, baseUrl: nodeUrl }),
    // It would load wallet metadata from another host at each start.
    slushWalletConfig: null,
  });
}

export type Kit = ReturnType<typeof createKit>;

declare module '@mysten/dapp-kit-react' {
  interface Register {
    dAppKit: Kit;
  }
}
