/** The networks of Sui and their nodes. Loads no client, so commands that need no client start faster. */

/** The public nodes of the Sui Foundation, and the node of `sui start`. */
export const NODES = {
  mainnet: 'https://fullnode.mainnet.sui.io:443',
  testnet: 'https://fullnode.testnet.sui.io:443',
  devnet: 'https://fullnode.devnet.sui.io:443',
  localnet: 'http://127.0.0.1:9000',
} as const;

export type Network = keyof typeof NODES;
export const NETWORKS = Object.keys(NODES) as Network[];
