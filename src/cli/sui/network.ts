/** The Sui node that the commands talk to. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { fromBase58, toBase58 } from '@mysten/sui/utils';
import { causeCode, NoAnswerError, platformFetch, withBoundedBody } from 'sui-enclave/fetch';
import { SuiError } from 'sui-enclave/sui/errors';
import { ANSWER_TOO_LARGE } from 'sui-enclave/sui/failures';
import { SuiCommandError } from './errors.ts';
import { NETWORKS, type Network, NODES } from './network_names.ts';

export { NETWORKS, type Network };

/**
 * Chains of the networks that are never reset: the first 4 bytes of the digest of the first checkpoint, in
 * hexadecimal, by network. Other networks are reset, and then lose their packages.
 */
export const CHAIN_IDS: Readonly<Record<string, string>> = { mainnet: '35834a8a', testnet: '4c78adac' };

/**
 * Last bytes of the chain identifiers of `make dev-sui`, which no network has. The first bytes differ with
 * each start.
 */
const MODEL_CHAIN = new Uint8Array(28).fill(0xde);

/** Returns the identifier of a chain of `make dev-sui`, in base58. @param start its first 4 bytes */
export function modelChainId(start: Uint8Array): string {
  return toBase58(Uint8Array.of(...start, ...MODEL_CHAIN));
}

/** Returns whether a chain is one of `make dev-sui`. @param chainId the chain's identifier in base58 */
export function isModelChain(chainId: string): boolean {
  try {
    return modelChainId(fromBase58(chainId).subarray(0, 4)) === chainId;
  } catch {
    return false;
  }
}

/** Time limit of one request including its answer, in milliseconds. */
const TIMEOUT_MS = 30_000;

/**
 * Maximum size of an answer in bytes: more than twice the size of 50 objects of the maximum size, 250 KiB.
 */
const MAX_ANSWER = 32 * 1024 * 1024;

/** Returns the error for a command line that names neither a network nor a node. */
export function noNetwork(): SuiCommandError {
  return new SuiCommandError(
    'NO_NETWORK',
    `name a network by --network (${NETWORKS.join(', ')}), or a node by --rpc-url`,
  );
}

export interface Node {
  readonly url: string;
  /** Name of the node, for people. */
  readonly description: string;
  /**
   * Whether commands refuse development roots and registers: the network is public, or the node is remote.
   */
  readonly isReal: boolean;
}

export interface NodeConnection extends Node {
  readonly client: SuiGrpcClient;
  /**
   * Returns the code of the last request's failure, such as ECONNREFUSED, which the client's own error
   * lacks.
   */
  failure(): string | null;
}

/**
 * Returns the node that a command line names. Sends no request.
 *
 * @param network the network, whose public node is used by default
 * @param rpcUrl URL of a node in place of the public one
 * @throws SuiCommandError: NO_NETWORK; SuiError
 */
export function chooseNode(network: Network | undefined, rpcUrl: string | undefined): Node {
  if (network === undefined && rpcUrl === undefined) throw noNetwork();
  const url = checkUrl(rpcUrl ?? (network === undefined ? '' : NODES[network]));
  const isPublic = network !== undefined && network !== 'localnet';
  return {
    url,
    description: network === undefined ? url : `${network} (${url})`,
    isReal: isPublic || !isLoopback(new URL(url)),
  };
}

/** Creates a client for the node that a command line names. @throws as `chooseNode` */
export function connect(
  network: Network | undefined,
  rpcUrl: string | undefined,
  timeoutMs = TIMEOUT_MS,
): NodeConnection {
  const node = chooseNode(network, rpcUrl);
  let failure: string | null = null;
  const client = new SuiGrpcClient({
    network: network ?? 'custom',
    baseUrl: node.url,
    // The transport has no deadline, and would wait for a node that hangs.
    fetch: async (request, init) => {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = init?.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
      failure = null;
      try {
        const response = await platformFetch(request, { ...init, signal, redirect: 'error' });
        return await withBoundedBody(response, MAX_ANSWER);
      } catch (error) {
        failure = causeCode(error);
        throw error instanceof NoAnswerError ? new Error(ANSWER_TOO_LARGE) : error;
      }
    },
  });
  return { ...node, client, failure: () => failure };
}

function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/**
 * Requires https: without TLS, anyone on the path to the node could change its answers, from which
 * transactions are built.
 */
function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLocal = url !== null && isLoopback(url);
  if (url === null || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal))) {
    throw new SuiError('SUI_VALUE', '--rpc-url must be an https URL, or an http URL of this machine');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new SuiError('SUI_VALUE', '--rpc-url must have no user name, query or fragment');
  }
  return url.href.replace(/\/$/, '');
}
