/** The Sui node that the commands talk to. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { SuiError } from '../../src/sui/errors.ts';
import { SuiCommandError } from './errors.ts';

/** The public nodes of the Sui Foundation, and the one of `sui start`. */
const NODES: Readonly<Record<string, string>> = {
  mainnet: 'https://fullnode.mainnet.sui.io:443',
  testnet: 'https://fullnode.testnet.sui.io:443',
  devnet: 'https://fullnode.devnet.sui.io:443',
  localnet: 'http://127.0.0.1:9000',
};

/** In base58: the chain of `make dev-sui`, which is a model. No network has it. */
export const MODEL_CHAIN_ID = '3qbR1eZRqXUWroWKKYhbDmR3FfqTHfqSU8zZSxtANzYh';

/** The time for one request, including its answer. */
const TIMEOUT_MS = 30_000;

/** Neither a network nor a node was named. */
export function noNetwork(): SuiCommandError {
  return new SuiCommandError(
    'NO_NETWORK',
    `name a network by --network (${Object.keys(NODES).join(', ')}), or a node by --rpc-url`,
  );
}

export interface NodeConnection {
  readonly client: SuiGrpcClient;
  /** The node, described for people. */
  readonly description: string;
}

/**
 * @param network a name, for its public node
 * @param rpcUrl a node in place of that one
 * @throws SuiCommandError: NO_NETWORK; SuiError
 */
export function connect(
  network: string | undefined,
  rpcUrl: string | undefined,
  timeoutMs = TIMEOUT_MS,
): NodeConnection {
  if (network === undefined && rpcUrl === undefined) throw noNetwork();
  const node = network !== undefined && Object.hasOwn(NODES, network) ? NODES[network] : undefined;
  if (network !== undefined && node === undefined) {
    throw new SuiError('SUI_VALUE', `--network must be one of ${Object.keys(NODES).join(', ')}`);
  }
  const baseUrl = checkUrl(rpcUrl ?? node ?? '');
  const client = new SuiGrpcClient({
    network: network ?? 'custom',
    baseUrl,
    // The transport has no deadline of its own, and waits for a node that hangs.
    fetch: (input, init) => {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = init?.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
      return fetch(input, { ...init, signal, redirect: 'error' });
    },
  });
  return { client, description: network === undefined ? baseUrl : `${network} (${baseUrl})` };
}

/** Without TLS, anyone on the way to the node could change its answers, which end up in what is signed. */
function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLocal = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url === null || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal))) {
    throw new SuiError('SUI_VALUE', '--rpc-url must be an https URL; http only on this machine');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new SuiError('SUI_VALUE', '--rpc-url must have no user name, query or fragment');
  }
  return url.href.replace(/\/$/, '');
}
