/** Sends the transaction of a command, or only simulates or prints it. */

import type { SuiClientTypes } from '@mysten/sui/client';
import type { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Transaction } from '@mysten/sui/transactions';
import { fromBase58, normalizeStructTag, normalizeSuiAddress, toBase64, toHex } from '@mysten/sui/utils';
import { buildTransaction } from 'sui-enclave/sui/build';
import { NodeRefusedError, ObjectNotFoundError, SuiError } from 'sui-enclave/sui/errors';
import { toExecutionError, toSuiError } from 'sui-enclave/sui/failures';
import { type PackageVersion, readPackage } from 'sui-enclave/sui/packages';
import { executeSigned, waitUntilVisible } from 'sui-enclave/sui/send';
import { describeTransaction } from './describe_transaction.ts';
import { SuiCommandError } from './errors.ts';
import { describeExpiry, withoutExpiry } from './expiry.ts';
import { CHAIN_IDS, connect, type Network, type NodeConnection } from './network.ts';
import type { CommonOptions } from './options.ts';
import type { Outcome } from './outcome.ts';
import { findSender, readSigner } from './signer.ts';

/**
 * Maximum gas budget that a node may propose: 1 SUI, many times more than any command needs and an honest
 * node proposes.
 */
const MAX_PROPOSED_BUDGET = 1_000_000_000n;

/** The objects that a transaction created, or would create. */
export interface Created {
  readonly created: readonly { readonly id: string; readonly type: string }[];
  /** Ids of the created objects that everybody can use. */
  readonly shared: readonly string[];
}

/** The effects of an executed transaction. */
export interface Executed extends Created {
  readonly digest: string;
  /** The package that the transaction published, if any. */
  readonly packageId: string | undefined;
}

export interface Submission {
  /** The transaction's purpose, for people, such as "create the config". */
  readonly title: string;
  /** The transaction's arguments and, after the execution, its results. */
  readonly fields: Readonly<Record<string, unknown>>;
  /**
   * Returns the fields of a transaction that is not sent. Called before anything is signed: if it throws,
   * nothing is signed.
   *
   * @param simulated objects that the node's simulation created; their ids may differ from the final ones
   */
  preview?(simulated: Created): Record<string, unknown>;
  /** Returns the fields that are known only after the execution. */
  report?(executed: Executed): Record<string, unknown>;
}

/** Options of a command line, and limits for commands that sign without a person's consent. */
export type ChainOptions = CommonOptions & {
  /** Maximum gas price at which a transaction is signed, in MIST. Default: the chain's own limit. */
  readonly maxGasPrice?: bigint;
};

export class Chain {
  /** Notes that a command makes while it runs; printed with the outcome. */
  readonly notes: string[] = [];
  /** Time in milliseconds to wait until the node shows a transaction that was, or may have been, executed. */
  indexingMs = 20_000;
  /**
   * Called with the gas budget, in MIST, of a transaction that is about to be signed. If it throws, nothing
   * is signed.
   */
  beforeSigning: (budget: bigint) => void = () => {};
  readonly #options: ChainOptions;
  readonly #env: Readonly<Record<string, string | undefined>>;
  #node: NodeConnection | undefined;
  #transaction: Transaction | undefined;

  constructor(options: ChainOptions, env: Readonly<Record<string, string | undefined>>) {
    this.#options = options;
    this.#env = env;
  }

  /** @throws SuiCommandError: NO_NETWORK; SuiError */
  get client(): SuiGrpcClient {
    return this.#connected.client;
  }

  /** Whether the command line names a node. */
  get isNamed(): boolean {
    return this.network !== undefined || this.#options['rpc-url'] !== undefined;
  }

  /** The name of the network, if one is given. */
  get network(): Network | undefined {
    return this.#options.network;
  }

  /** Whether the command only simulates its transaction, and changes no file. */
  get isDryRun(): boolean {
    return this.#options['dry-run'] === true;
  }

  /** Whether the node belongs to a network that accepts only real enclaves. @throws as `client` */
  get isReal(): boolean {
    return this.#connected.isReal;
  }

  /** Whether the command line names a node, and the node accepts only real enclaves. @throws as `client` */
  get isOnRealNetwork(): boolean {
    return this.isNamed && this.isReal;
  }

  /** The node, described for people. @throws as `client` */
  get description(): string {
    return this.#connected.description;
  }

  /**
   * Reason why the node did not answer the last request: a code such as ECONNREFUSED, or null.
   *
   * @throws as `client`
   */
  get failure(): string | null {
    return this.#connected.failure();
  }

  /** The commands of the transaction that should be sent; empty if no transaction was made. */
  get plan(): string[] {
    return this.#transaction === undefined ? [] : describeTransaction(this.#transaction);
  }

  /** @throws SuiCommandError: NO_SENDER or SIGNER; SuiError */
  sender(): string {
    return findSender(this.#env, this.#options);
  }

  get #connected(): NodeConnection {
    this.#node ??= connect(this.#options.network, this.#options['rpc-url']);
    return this.#node;
  }

  /**
   * Signs and executes a transaction, unless `--dry-run` or `--unsigned` says otherwise. In any case the node
   * simulates it first, so that a transaction that would fail is not sent and costs no gas.
   *
   * @throws SuiError; SuiCommandError: SIGNER; DEPLOYMENT if the node does not belong to the network that the
   *   command line names
   */
  async submit(tx: Transaction, { title, fields, preview, report }: Submission): Promise<Outcome> {
    this.#transaction = tx;
    const sender = this.sender();
    if (CHAIN_IDS[this.network ?? ''] !== undefined) await this.id();
    const built = await this.#build(tx, sender);
    const previewed = preview?.(await this.#simulate(built));
    const bytes = this.#options['unsigned'] ? await this.#removeExpiry(built) : built;
    const expires = describeExpiry(bytes);
    const { commands, gasData } = tx.getData();
    const calls = commands.map(({ MoveCall: call }) => call).filter((call) => call !== undefined);
    const allFields = {
      ...fields,
      network: this.#connected.description,
      sender,
      calls: calls.map(({ package: id, module, function: name }) => `${id}::${module}::${name}`),
      gasBudget: formatSui(gasData.budget ?? 0),
      ...(expires !== null && { expires }),
    };
    if (this.#options['dry-run']) {
      return {
        status: 'dry-run',
        title: `The node simulated it without a failure: ${title}`,
        fields: { ...allFields, ...previewed },
      };
    }
    if (this.#options['unsigned']) {
      const transaction = toBase64(bytes);
      return {
        status: 'unsigned',
        title,
        fields: { ...allFields, ...previewed, transaction },
        text: transaction,
      };
    }
    const { gas, ...executed } = await this.#execute(bytes, BigInt(gasData.budget ?? 0));
    const effects = { ...report?.(executed), digest: executed.digest, gas: formatSui(gas) };
    return { status: 'done', title: `Done: ${title}`, fields: { ...allFields, ...effects } };
  }

  async #build(tx: Transaction, sender: string): Promise<Uint8Array> {
    tx.setSender(sender);
    // The payer is set here, so that a node can't choose it.
    tx.setGasOwner(sender);
    const budget = this.#options['gas-budget'];
    if (budget !== undefined) tx.setGasBudget(budget);
    const bytes = await fromNode(buildTransaction(this.client, tx));
    const { gasData } = tx.getData();
    this.#checkPrice(BigInt(gasData.price ?? 0));
    const proposed = BigInt(gasData.budget ?? 0);
    if (budget === undefined && proposed > MAX_PROPOSED_BUDGET) {
      throw new SuiError(
        'SUI_NODE_ANSWER',
        `the node proposes a gas budget of ${formatSui(proposed)}: set --gas-budget to allow it`,
      );
    }
    return bytes;
  }

  /** Returns the objects that a transaction would create. @throws SuiError */
  async #simulate(transaction: Uint8Array): Promise<Created> {
    const simulated = await fromNode(
      this.client.core.simulateTransaction({ transaction, include: { effects: true, objectTypes: true } }),
    );
    const { status, effects, objectTypes } = simulated.Transaction ?? simulated.FailedTransaction;
    if (status.error !== null) throw toExecutionError(status.error);
    return listCreated(effects.changedObjects, objectTypes);
  }

  /**
   * Refuses a gas price so high that the budget would be used up and the transaction would fail. @throws
   * SuiError
   */
  #checkPrice(price: bigint): void {
    const { maxGasPrice } = this.#options;
    if (maxGasPrice === undefined || price <= maxGasPrice) return;
    throw new SuiError(
      'SUI_NODE_ANSWER',
      `the node sets a gas price of ${price} MIST, and the maximum is ${maxGasPrice}: compare the price with another node's`,
    );
  }

  /** Returns bytes for a signer elsewhere, without the node's expiry if nothing depends on it. */
  async #removeExpiry(built: Uint8Array): Promise<Uint8Array> {
    const expires = describeExpiry(built);
    if (expires === null) return built;
    // If the node does not answer, the bytes stay as they are.
    const bytesWithoutExpiry = await withoutExpiry(this.client, built).catch(() => null);
    this.notes.push(
      bytesWithoutExpiry === null
        ? `The transaction expires ${expires}, as the node set it: have it signed and sent before then.`
        : `The node let the transaction expire ${expires}. The command removed this limit, since an owned object prevents a second execution.`,
    );
    return bytesWithoutExpiry ?? built;
  }

  async #execute(bytes: Uint8Array, budget: bigint): Promise<Executed & { gas: bigint }> {
    const signer = await readSigner(this.#env, this.#options);
    this.beforeSigning(budget);
    const { signature } = await signer.signTransaction(bytes);
    const sent = await executeSigned(this.client, {
      transaction: bytes,
      signatures: [signature],
      include: { effects: true, objectTypes: true } as const,
      lookUpMs: this.indexingMs,
    });
    const executed = sent.Transaction ?? sent.FailedTransaction;
    const { digest } = executed;
    const { changedObjects, gasUsed } = executed.effects;
    const gas = BigInt(gasUsed.computationCost) + BigInt(gasUsed.storageCost) - BigInt(gasUsed.storageRebate);
    // This also waits for a failed transaction, which has changed the gas coin.
    await this.#awaitVisible(digest);
    const { error } = executed.status;
    if (error !== null) throw toExecutionError(error);
    return {
      digest,
      gas,
      ...listCreated(changedObjects, executed.objectTypes),
      packageId: changedObjects.find(({ outputState }) => outputState === 'PackageWrite')?.objectId,
    };
  }

  /**
   * Waits until the node shows the transaction, since the next command reads the objects that this command
   * wrote.
   */
  async #awaitVisible(digest: string): Promise<void> {
    try {
      await waitUntilVisible(this.client, digest, { waitMs: this.indexingMs });
    } catch {
      this.notes.push(
        'The transaction is executed, but the node does not show it yet: wait a few seconds before the next step.',
      );
    }
  }

  /**
   * Returns the id of a package's first version. Types have the id of the version that introduced them: see
   * `readTypeOrigin`.
   *
   * @throws SuiError
   */
  async originalPackage(packageId: string): Promise<string> {
    const answer = this.client.movePackageService.getPackage({ packageId });
    const { response } = await fromNode(answer).catch((error: SuiError) => {
      // The node gives no text with this answer.
      const isMissing = error instanceof NodeRefusedError && error.status === 'NOT_FOUND';
      throw isMissing ? new ObjectNotFoundError(packageId) : error;
    });
    const { originalId } = response.package ?? {};
    if (originalId === undefined)
      throw new SuiError('SUI_NODE_ANSWER', `the node does not name the original package of ${packageId}`);
    return normalizeSuiAddress(originalId);
  }

  /**
   * Returns a version of a package, and the id of its first version, by which bytecode names the package.
   * @throws SuiError
   */
  async package(packageId: string): Promise<PackageVersion & { readonly originalId: string }> {
    // GetPackage describes the modules, without their bytecode.
    const packageVersion = await fromNode(readPackage(this.client, packageId));
    if (packageVersion.modules.length === 0) {
      throw new SuiError('SUI_NODE_ANSWER', `the node does not give the modules of ${packageId}`);
    }
    return { ...packageVersion, originalId: await this.originalPackage(packageId) };
  }

  /** Returns the digest of the chain's first checkpoint, in base58. @throws SuiError */
  async identifier(): Promise<string> {
    return (await fromNode(this.client.core.getChainIdentifier())).chainIdentifier;
  }

  /**
   * Returns the first 4 bytes of `identifier`, in hexadecimal, by which the deployment file and
   * `Published.toml` name a chain.
   *
   * @throws SuiError; SuiCommandError: DEPLOYMENT if the command line names a network that has another chain
   */
  async id(): Promise<string> {
    const id = toHex(fromBase58(await this.identifier()).slice(0, 4));
    const expected = CHAIN_IDS[this.network ?? ''];
    if (expected === undefined || expected === id) return id;
    throw new SuiCommandError(
      'DEPLOYMENT',
      `the chain of ${this.network} is ${expected}, but the chain of the node is ${id}: name a node of ${this.network} by --rpc-url, or the node's network by --network`,
    );
  }

  /** Returns an object's type and content. @throws SuiError */
  async object(objectId: string): Promise<{ type: string; content: Uint8Array }> {
    const { object } = await fromNode(this.client.core.getObject({ objectId, include: { content: true } }));
    return { type: object.type, content: object.content };
  }
}

function listCreated(
  changedObjects: readonly SuiClientTypes.ChangedObject[],
  objectTypes: Readonly<Record<string, string>>,
): Created {
  const created = changedObjects.filter(
    ({ idOperation, outputState }) => idOperation === 'Created' && outputState === 'ObjectWrite',
  );
  return {
    created: created.map(({ objectId }) => ({
      id: normalizeSuiAddress(objectId),
      type: normalizeStructTag(objectTypes[objectId] ?? '0x0::unknown::Unknown'),
    })),
    shared: created
      .filter(({ outputOwner }) => outputOwner?.$kind === 'Shared')
      .map(({ objectId }) => normalizeSuiAddress(objectId)),
  };
}

/** Turns any failure of a call of the Sui client into a SuiError. */
export async function fromNode<T>(promise: PromiseLike<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    let suiError: SuiError;
    try {
      suiError = toSuiError(error);
    } catch (cause) {
      // The client has no error of its own for an answer that it can't use.
      throw new SuiError(
        'SUI_NODE_ANSWER',
        `the node's answer can't be used: ${(cause as Error).message.slice(0, 600)}`,
        { cause },
      );
    }
    throw suiError;
  }
}

function formatSui(mist: bigint | number | string): string {
  return `${(Number(mist) / 1e9).toFixed(9).replace(/\.?0+$/, '')} SUI`;
}
