/** Sets up dapp-kit: the wallets of the page, and the page's Sui client. */
import { createDAppKit } from '@mysten/dapp-kit-react';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Settings } from '../settings.ts';

export function createKit({ sui: { network, nodeUrl } }: Settings) {
  return createDAppKit({
    networks: [network],
    createClient: () => new SuiGrpcClient({ network, baseUrl: nodeUrl }),
    // This wallet would load metadata from another host at each start.
    slushWalletConfig: null,
  });
}

export type Kit = ReturnType<typeof createKit>;

declare module '@mysten/dapp-kit-react' {
  interface Register {
    dAppKit: Kit;
  }
}
