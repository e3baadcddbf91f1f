/** A Sui node through which a poster sees the chain, verifies values and sends transactions. */
import { ObjectError, TransactionError } from '@mysten/sui/client';
import { Inputs, Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import {
  ClientError,
  EnclaveClient,
  type RegisteredAnswer,
  type RegisteredEnclaveClient,
} from 'sui-enclave/client';
import { ObjectNotFoundError, SuiError } from 'sui-enclave/sui/errors';
import { toExecutionError, toSendError } from 'sui-enclave/sui/failures';
import { type EnclaveConfig, readConfig } from 'sui-enclave/sui/objects';
import type { Chain } from '../sui/chain.ts';
import { fromNode } from '../sui/chain.ts';
import type { Deployments } from '../sui/deployments.ts';
import { type Answer, chooseObjects, type createSignedType, type MoveCall } from '../sui/move_call.ts';
import {
  addSignedCall,
  CLOCK,
  checkApplication,
  checkObjects,
  chooseSignedType,
  echoes,
  findFunction,
  RANDOM,
  type Request,
} from '../sui/signed_call.ts';
import type { Pending } from './transactions.ts';

/** An object at a version. */
export interface ObjectReference {
  readonly id: string;
  readonly version: bigint;
  readonly digest: string;
}

/** A coin of SUI. */
export interface Coin extends ObjectReference {
  /** Balance in MIST. */
  readonly balance: bigint;
}

/** The state of the chain that a round needs. */
export interface ChainState {
  readonly epoch: bigint;
  /** Price of a unit of gas, in MIST. */
  readonly gasPrice: bigint;
  /** The chain's clock, in milliseconds since 1970. */
  readonly clockMs: number;
}

/** A verified answer of an enclave. */
export interface Value {
  readonly url: string;
  readonly answer: RegisteredAnswer<Answer>;
}

/** The terms on which a transaction pays. */
export interface Terms {
  readonly sender: string;
  readonly coin: ObjectReference;
  /** Gas budget in MIST. */
  readonly budget: bigint;
  readonly price: bigint;
  /** The last epoch in which the transaction can be executed. */
  readonly lastEpoch: bigint;
}

/** The outcome of an executed transaction, as a node shows it. */
export type TransactionOutcome =
  | { readonly kind: 'unknown' }
  /** The node's answer contradicts itself or the transaction, such as by the effects of another one. */
  | { readonly kind: 'contradiction' }
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: SuiError };

export interface NodeSettings {
  /** The node's host, for people. */
  readonly name: string;
  readonly chain: Chain;
  readonly request: Request;
  /** The deployment file, whose chain the node must have. */
  readonly deployments: Deployments | undefined;
  readonly naming: Parameters<typeof chooseSignedType>[2];
  /** Ids of the objects that the function takes; empty to use those of the deployment file. */
  readonly objects: readonly string[];
  readonly anyAnswer: boolean;
  readonly roots: readonly Uint8Array[] | undefined;
  /** Maximum age of a value, in milliseconds. */
  readonly maxAgeMs: number;
  /** Time limit of a request to an enclave, in milliseconds. */
  readonly timeoutMs: number;
  /** Returns the time in milliseconds since 1970. */
  now(): number;
}

/** The function that takes the values, as the node describes it. */
interface Prepared {
  readonly config: EnclaveConfig;
  readonly call: MoveCall;
  readonly signedType: ReturnType<typeof createSignedType>;
  readonly objects: readonly string[];
}

/** Maximum epoch that is accepted. No chain reaches it, and the epochs after it still fit into a u64. */
const MAX_EPOCH = 2n ** 48n;

/** Offset of the time in the content of the clock, after its id. */
const CLOCK_TIME = 32;
/** Time limit of an enclave's value, in time limits of a request: it takes an attestation and a call. */
const REQUESTS = 2;
/** Maximum number of pages of coins that are read. */
const MAX_PAGES = 4;
const PAGE = 50;

export class PosterNode {
  readonly #settings: NodeSettings;
  #prepared: Promise<Prepared> | undefined;
  /** Clients of the enclaves, by their URLs. */
  readonly #clients = new Map<string, RegisteredEnclaveClient>();
  /** References of shared and immutable objects, which never change, by id. */
  readonly #references = new Map<string, ReturnType<typeof Inputs.ObjectRef> | string>();

  constructor(settings: NodeSettings) {
    this.#settings = settings;
  }

  get name(): string {
    return this.#settings.name;
  }

  get #client() {
    return this.#settings.chain.client;
  }

  /** Forgets everything that the node said, after a failure. */
  forget(): void {
    this.#prepared = undefined;
    this.#clients.clear();
    this.#references.clear();
  }

  /** @throws SuiError */
  async readState(): Promise<ChainState> {
    const { core } = this.#client;
    const [{ systemState }, { referenceGasPrice }, { object }] = await fromNode(
      Promise.all([
        core.getCurrentSystemState(),
        core.getReferenceGasPrice(),
        core.getObject({ objectId: CLOCK, include: { content: true } }),
      ]),
    );
    const { content } = object;
    if (content.length < CLOCK_TIME + 8) throw unusable("the chain's clock");
    const clock = new DataView(content.buffer, content.byteOffset + CLOCK_TIME, 8).getBigUint64(0, true);
    const epoch = readU64('the epoch', systemState.epoch);
    if (epoch > MAX_EPOCH) throw unusable('the epoch');
    return {
      epoch,
      gasPrice: readU64('the gas price', referenceGasPrice),
      clockMs: Number(clock),
    };
  }

  /** Returns the versions of objects; an object that does not exist has none. @throws SuiError */
  async readVersions(ids: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
    const { objects } = await fromNode(this.#client.core.getObjects({ objectIds: [...ids] }));
    const versions = new Map<string, bigint>();
    for (const [index, object] of objects.entries()) {
      const id = ids[index] ?? '';
      if (!(object instanceof Error)) versions.set(id, readU64('a version', object.version));
      else if (!isMissing(object)) throw unusable(`the object ${id}`);
    }
    return versions;
  }

  /** Returns the owner's coins of SUI with at least this balance, in MIST. @throws SuiError */
  async listCoins(owner: string, least: bigint): Promise<readonly Coin[]> {
    const coins: Coin[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer: Awaited<ReturnType<typeof this.list>> = await this.list(owner, cursor);
      for (const { objectId: id, version, digest, balance } of answer.objects) {
        const coin = {
          id,
          version: readU64('a version', version),
          digest,
          balance: readU64('a balance', balance),
        };
        if (coin.balance >= least) coins.push(coin);
      }
      if (!answer.hasNextPage || answer.cursor === null) break;
      ({ cursor } = answer);
    }
    return coins;
  }

  /** Reads a page of coins. */
  private async list(owner: string, cursor: string | null) {
    return await fromNode(
      this.#client.core.listCoins({ owner, limit: PAGE, ...(cursor !== null && { cursor }) }),
    );
  }

  /** Reads the function and the config. @throws EnclaveError */
  async prepare(): Promise<void> {
    await this.#prepare();
  }

  #prepare(): Promise<Prepared> {
    this.#prepared ??= this.#readFunction().catch((error) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #readFunction(): Promise<Prepared> {
    const { chain, request, deployments, naming, objects: ids } = this.#settings;
    await deployments?.checkChain(chain);
    const moveFunction = await findFunction(chain, request);
    const { call } = moveFunction;
    const objects = chooseObjects(call, ids, request.objects);
    checkObjects(call, objects);
    const config = await fromNode(readConfig(this.#client, request.configId));
    checkApplication(call, config);
    return { config, call, signedType: chooseSignedType(moveFunction, request.schema, naming), objects };
  }

  /**
   * Returns a value that a key registered under the config has signed.
   *
   * @param stop ends the request
   * @throws ClientError or AttestationError if the enclave's answer is not valid, and another EnclaveError if
   *   the node's answer is not
   */
  async ask(url: string, stop: AbortSignal): Promise<Value> {
    const { request, anyAnswer, timeoutMs } = this.#settings;
    const { signedType } = await this.#prepare();
    // Without a limit, a host could delay the other enclaves' values by answers with ever new keys.
    const timeout = AbortSignal.timeout(REQUESTS * timeoutMs);
    const signal = AbortSignal.any([stop, timeout]);
    const expect = anyAnswer ? {} : echoes(request.body, signedType.names);
    try {
      const client = await this.#openClient(url, signal);
      const answer = await client.call(request.path, request.body, signedType.schema, { expect, signal });
      return { url, answer };
    } catch (error) {
      if (!signal.aborted) throw error;
      const message = `the enclave at ${url} gave no valid answer within ${REQUESTS * timeoutMs} ms`;
      throw new ClientError('CLIENT_UNREACHABLE', message, { cause: error });
    }
  }

  async #openClient(url: string, signal: AbortSignal): Promise<RegisteredEnclaveClient> {
    const existing = this.#clients.get(url);
    if (existing !== undefined) return existing;
    const { request, roots, maxAgeMs: maxAnswerAgeMs, timeoutMs, now } = this.#settings;
    const client = await EnclaveClient.forConfig(this.#client, request.configId, url, {
      maxAnswerAgeMs,
      timeoutMs,
      now,
      signal,
      ...(roots && { roots }),
    });
    this.#clients.set(url, client);
    return client;
  }

  /**
   * Builds the transaction that passes a value to the function. The node provides the gas coin, the versions
   * of objects, the price of gas and the epoch. It can't change the function, the signed value or the sender.
   *
   * @throws SuiError
   */
  async build({ answer }: Value, { sender, coin, budget, price, lastEpoch }: Terms): Promise<Uint8Array> {
    const { request } = this.#settings;
    const { config, call, signedType, objects } = await this.#prepare();
    const { enclaveId } = answer;
    await this.#readReferences([config.id, enclaveId, ...objects]);
    const tx = new Transaction();
    tx.setSender(sender);
    tx.setGasOwner(sender);
    tx.setGasBudget(budget);
    tx.setGasPrice(price);
    tx.setGasPayment([{ objectId: coin.id, version: `${coin.version}`, digest: coin.digest }]);
    tx.setExpiration({ Epoch: `${lastEpoch}` });
    const signedCall = {
      target: request.target,
      call,
      signedType,
      answer,
      enclaveId,
      config,
      objects,
      sender,
    };
    addSignedCall(tx, signedCall, (objectId, isMutable) => {
      if (objectId === CLOCK) return tx.object.clock();
      const reference = this.#references.get(objectId);
      if (reference === undefined) throw unusable(`the object ${objectId}`);
      if (typeof reference !== 'string') return tx.object(reference);
      return tx.object(
        Inputs.SharedObjectRef({ objectId, mutable: isMutable, initialSharedVersion: reference }),
      );
    });
    return await tx.build();
  }

  /**
   * Reads the references by which transactions name objects. Accepts only shared and immutable objects, since
   * an object that an address owns would make transactions in flight block each other.
   */
  async #readReferences(ids: readonly string[]): Promise<void> {
    const { call } = await this.#prepare();
    const all = call.roles.some(({ kind }) => kind === 'random') ? [...ids, RANDOM] : ids;
    const missing = all.filter((id) => !this.#references.has(id));
    if (missing.length === 0) return;
    const { objects } = await fromNode(this.#client.core.getObjects({ objectIds: missing }));
    for (const [index, object] of objects.entries()) {
      const id = missing[index] ?? '';
      if (isMissing(object)) throw new ObjectNotFoundError(id);
      if (object instanceof Error) throw unusable(`the object ${id}`);
      const { owner, version, digest } = object;
      if (owner.$kind === 'Shared') {
        this.#references.set(id, `${readU64('a version', owner.Shared.initialSharedVersion)}`);
      } else if (owner.$kind === 'Immutable') {
        this.#references.set(id, Inputs.ObjectRef({ objectId: id, version, digest }));
      } else {
        throw new SuiError(
          'SUI_VALUE',
          `the object ${id} must be shared or immutable, not owned by an address`,
        );
      }
    }
  }

  /** Has the node simulate a transaction. @throws SuiError that says why it would fail */
  async simulate(transaction: Uint8Array): Promise<void> {
    const { FailedTransaction: failed } = await fromNode(
      this.#client.core.simulateTransaction({ transaction }),
    );
    if (failed === undefined) return;
    const { error } = failed.status;
    throw error === null ? unusable('the simulation') : toExecutionError(error);
  }

  /** Sends a transaction. The answer proves nothing: see `lookUp`. @throws SuiError */
  async send({ transaction, signature }: Pick<Pending, 'transaction' | 'signature'>): Promise<void> {
    const digest = TransactionDataBuilder.getDigestFromBytes(transaction);
    try {
      await this.#client.core.executeTransaction({ transaction, signatures: [signature] });
    } catch (error) {
      throw toSendError(error, digest);
    }
  }

  /** Looks a transaction up. @throws SuiError */
  async lookUp({ digest, coin }: Pending): Promise<TransactionOutcome> {
    const lookup = this.#client.core.getTransaction({ digest, include: { effects: true } });
    const answer = await fromNode(
      lookup.catch((error: unknown) => {
        if (error instanceof TransactionError && error.reason === 'notFound') return undefined;
        throw error;
      }),
    );
    if (answer === undefined) return { kind: 'unknown' };
    const executed = answer.Transaction ?? answer.FailedTransaction;
    const { effects, status } = executed;
    const isPaid = effects.changedObjects.some(
      ({ objectId, inputVersion }) => objectId === coin.id && inputVersion === `${coin.version}`,
    );
    const isSame = executed.digest === digest && effects.transactionDigest === digest && isPaid;
    if (!isSame || effects.status.success !== status.success) return { kind: 'contradiction' };
    return status.error === null
      ? { kind: 'succeeded' }
      : { kind: 'failed', error: toExecutionError(status.error) };
  }
}

function isMissing(object: unknown): boolean {
  return object instanceof ObjectError && object.reason === 'notFound';
}

function readU64(name: string, digits: string): bigint {
  if (!/^\d{1,20}$/.test(digits)) throw unusable(name);
  return BigInt(digits);
}

function unusable(name: string): SuiError {
  return new SuiError('SUI_NODE_ANSWER', `the node's answer lacks ${name}, or has it in another form`);
}
