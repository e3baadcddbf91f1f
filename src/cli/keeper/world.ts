/** The environment that a keeper reads and changes: the chain and the enclaves. */
import { Transaction } from '@mysten/sui/transactions';
import { decodeAttestation } from 'sui-enclave/attestation';
import { MoveAbortError, ObjectNotFoundError, type SuiCode, SuiError } from 'sui-enclave/sui/errors';
import { type Enclave, type EnclaveConfig, readConfig, readEnclave } from 'sui-enclave/sui/objects';
import { destroyOldEnclave } from 'sui-enclave/sui/transactions';
import type { Environment } from '../command.ts';
import { askForAttestation, readAttestedKey } from '../sui/attest.ts';
import { Chain, fromNode } from '../sui/chain.ts';
import { checkContract, readRoots } from '../sui/contract.ts';
import { checkNotDevelopment } from '../sui/image_to_allow.ts';
import { chooseNode } from '../sui/network.ts';
import type { CommonOptions } from '../sui/options.ts';
import { type Candidate, register } from '../sui/registration.ts';
import type { Action, ChainState, TrustedAnswer } from './decide.ts';
import { EnclaveList } from './enclave_list.ts';
import type { KeeperFile } from './file.ts';

/** Outcome of an action without an error: `theirs` if another keeper had done it before. */
export type Done = 'done' | 'theirs' | 'simulated';

/** A node through which the keeper sees the chain. */
export interface KeeperNode {
  /** The node's host, for people. */
  readonly name: string;
  /** Reads the config and its enclaves. @throws EnclaveError */
  read(signal: AbortSignal): Promise<ChainState>;
}

export interface World {
  /** The nodes, at least one. */
  readonly nodes: readonly KeeperNode[];
  /** Attests the enclave at a URL. @throws EnclaveError that says why nothing at this URL is trusted */
  attest(url: string): Promise<TrustedAnswer>;
  /** Registers an enclave. @throws EnclaveError; what `beforeSigning` throws */
  register(candidate: Candidate, config: EnclaveConfig): Promise<Done>;
  /** Destroys an enclave. @throws as `register` */
  destroy(enclave: Enclave, config: EnclaveConfig): Promise<Done>;
}

export type Signing = Pick<CommonOptions, 'address' | 'keystore' | 'dry-run'>;

/**
 * Creates the world of a keeper's file: its chain and its enclaves. Sends no request yet.
 *
 * @param path the file's path, for messages
 * @param beforeSigning called with the gas budget, in MIST, and the kind of each transaction. If it throws,
 *   the transaction is not signed
 * @throws SuiCommandError: DEVELOPMENT_TRUST, NO_NETWORK; UnreadableFileError, AttestationError
 */
export async function createWorld(
  file: KeeperFile,
  path: string,
  signing: Signing,
  env: Environment,
  beforeSigning: (budget: bigint, kind: Action['kind']) => void,
): Promise<World> {
  const { enclavePackage, configId, registrarId, image } = file;
  const options = {
    ...signing,
    network: file.network,
    // The budget is fixed, so that no node decides what a transaction can cost.
    'gas-budget': file.gasBudget,
    maxGasPrice: file.maxGasPrice,
  };
  const connectTo = (node: string | undefined) =>
    new Chain({ ...options, ...(node !== undefined && { 'rpc-url': node }) }, env);
  // Undefined means the network's own node. The keeper sends transactions to the first node.
  const [first, ...otherNodes] = file.nodes;
  const nodes = [first, ...otherNodes];
  const connect = () => connectTo(first);
  let roots: Awaited<ReturnType<typeof readRoots>>;
  for (const node of nodes) {
    checkNotDevelopment(connectTo(node), image, path);
    roots = await readRoots(connectTo(node), file.root);
  }

  const lists = nodes.map(() => new EnclaveList());

  async function act(kind: Action['kind'], run: (chain: Chain) => Promise<Done>): Promise<Done> {
    const chain = connect();
    chain.beforeSigning = (budget) => beforeSigning(budget, kind);
    try {
      return await run(chain);
    } finally {
      // The lists are dropped after an error too, since they may no longer show the state of the chain.
      for (const list of lists) list.forget();
    }
  }

  return {
    nodes: nodes.map((url, index) => ({
      name: new URL(chooseNode(file.network, url).url).host,
      async read(signal) {
        const chain = connectTo(url);
        const { client } = chain;
        // The version is read first, so that a registration between the reads is read in the next round.
        const { object } = await fromNode(client.core.getObject({ objectId: configId, signal }));
        const config = await readConfig(client, configId, { signal });
        await checkContract(chain, config, { enclavePackage });
        const list = lists[index] ?? new EnclaveList();
        return { config, ...(await list.read(client, config, object.version, signal)) };
      },
    })),
    async attest(url) {
      const attested = await askForAttestation(url, roots?.[0], connect());
      const expected = { images: [image], roots, configId, deployments: undefined };
      const publicKey = await readAttestedKey(attested, expected);
      const { document } = attested;
      const { timestamp: attestedAtMs } = decodeAttestation(document);
      return { url, trusted: true, document, publicKey, attestedAtMs };
    },
    register: (candidate, config) =>
      act('register', async (chain) => {
        try {
          const target = { enclavePackage, config, deployments: undefined };
          const { status } = await register(chain, target, [candidate], registrarId);
          return status === 'unchanged' ? 'theirs' : toDone(status);
        } catch (error) {
          if (isAbort(error, 'enclave::EAlreadyRegistered')) return 'theirs';
          throw error;
        }
      }),
    destroy: (enclave, config) =>
      act('destroy', async (chain) => {
        const { id: enclaveId } = enclave;
        const tx = new Transaction();
        destroyOldEnclave(tx, { enclavePackage, application: config.application, enclaveId, configId });
        try {
          const { status } = await chain.submit(tx, {
            title: `destroy the enclave ${enclaveId}`,
            fields: { enclave: enclaveId },
          });
          return toDone(status);
        } catch (error) {
          if (await isEnclaveMissing(chain, enclaveId, error)) return 'theirs';
          throw error;
        }
      }),
  };
}

function toDone(status: string): Done {
  return status === 'dry-run' ? 'simulated' : 'done';
}

/** Codes with which a node answers a transaction that uses a deleted object. */
const DELETED: readonly SuiCode[] = ['SUI_OBJECT_NOT_FOUND', 'SUI_OBJECT_CHANGED', 'SUI_EXECUTION'];

/** Returns whether a transaction failed because the enclave no longer exists. */
async function isEnclaveMissing({ client }: Chain, enclaveId: string, error: unknown): Promise<boolean> {
  if (!(error instanceof SuiError) || !DELETED.includes(error.code)) return false;
  return await readEnclave(client, enclaveId).then(
    () => false,
    (thrown) => thrown instanceof ObjectNotFoundError,
  );
}

export function isAbort(error: unknown, abort: string): boolean {
  return error instanceof MoveAbortError && error.abort === abort;
}
