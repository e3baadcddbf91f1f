/**
 * A model of a Sui node on loopback, for tests and `make dev-sui`. It is a real server that speaks gRPC-web
 * like a full node, but has only the methods that the commands use, and a ledger of its own. It checks
 * signatures, versions and gas, and executes the bytecode of published packages (`move/`). Tests can make it
 * fail.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bcs } from '@mysten/sui/bcs';
import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { normalizeStructTag, normalizeSuiAddress, toBase58, toBase64 } from '@mysten/sui/utils';
import { verifyPersonalMessageSignature, verifyTransactionSignature } from '@mysten/sui/verify';
import { answersPreflight } from 'sui-enclave-testing/loopback';
import type { TransactionData } from './commands.ts';
import {
  describePackage,
  describePackageObject,
  findDatatype,
  findFunction,
  formatObjectJson,
  listPackageVersions,
  toGrpcObject,
} from './descriptions.ts';
import { EventLog } from './events.ts';
import { Executor } from './executor.ts';
import { Refusal } from './failures.ts';
import { answerFaucet } from './faucet.ts';
import { frame, isGrpcWeb, readMessage, trailer } from './grpc_web.ts';
import { History, LEDGER_PATH } from './history.ts';
import { lockedRefusal, ownedInputs } from './inputs.ts';
import { CLAIMED, Ledger, type LedgerObject } from './ledger.ts';
import { listen } from './listen.ts';
import { describeEmptyTransaction, sumBalances, toCommandOutputs } from './results.ts';
import { TransactionLog, toTimestamp } from './transactions.ts';

/** Fault that a method shows instead of answering. */
export type Fault =
  | { readonly status: keyof typeof GrpcStatusCode; readonly message: string }
  | 'reset'
  | 'hang'
  | 'garbage'
  | 'executes, and does not answer'
  | 'executes, and says ABORTED';

/** Purpose of a signature. Default: signing a transaction. */
export type Scope = 'TransactionData' | 'PersonalMessage';

export function chooseVerifier(scope: Scope | undefined) {
  return scope === 'PersonalMessage' ? verifyPersonalMessageSignature : verifyTransactionSignature;
}

/** Answers a request. An array of messages is a stream. */
type Method = (request: Uint8Array) => Promise<Uint8Array> | Uint8Array | Uint8Array[];

/** Fields that a request asks for. The model always sends all fields, but sends JSON only on request. */
type ReadMask = GrpcTypes.BatchGetObjectsRequest['readMask'];

/** Maximum number of dynamic fields in an answer. It is small, so that tests get several pages. */
const PAGE_SIZE = 2;
/** Maximum number of calls that the node remembers. */
const MAX_CALLS = 10_000;

export class LoopbackNode {
  readonly ledger = new Ledger();
  readonly executor: Executor;
  readonly events = new EventLog();
  readonly #history = new History();
  /** Faults by the name of the method. */
  readonly faults = new Map<string, Fault>();
  /** Changes an object before the node sends it, to give a false answer. */
  lie: (object: LedgerObject) => LedgerObject = (object) => object;
  epoch = 100n;
  /**
   * Lowest checkpoint whose transactions the node claims to have. The first transaction is in checkpoint 1.
   */
  lowestCheckpoint = 0n;
  /**
   * Time in milliseconds by which reads and simulations lag behind execution. Nodes answer a sent
   * transaction before reads show its changes.
   */
  lagMs = 0;
  /**
   * Time in milliseconds by which listings of an address's objects lag behind execution. On nodes, they lag
   * longer than other reads.
   */
  listingLagMs = 0;
  /** Whether pages of this machine may read the node's answers. */
  servesPages = false;
  /** Whether the node is also a faucet, at `POST /v2/gas`. */
  isFaucet = false;
  /** Digest of the first checkpoint, in base58. */
  chainId = toBase58(new Uint8Array(32).fill(0x2a));
  /** Rejects if a signature is not the sender's. The data are the bytes of a transaction, or a message. */
  verify: (data: Uint8Array, signature: string, sender: string, scope?: Scope) => Promise<unknown> = (
    data,
    signature,
    address,
    scope,
  ) => chooseVerifier(scope)(data, signature, { address });
  /** Names of the called methods, for the latest 10,000 calls. */
  readonly calls: string[] = [];
  readonly transactions = new TransactionLog();
  /** The ledgers before each transaction that some reads may not show yet, the oldest first. */
  #hidden: { readonly shownMs: number; readonly listedMs: number; readonly before: Ledger }[] = [];
  #last: Promise<unknown> = Promise.resolve();
  /** Owned objects of transactions that wait or run. */
  readonly #locked = new Set<string>();
  // A client in the same process may compile Move for seconds. With Node's default of 5 s the server would
  // close an idle connection that the client is about to use again.
  readonly #server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    this.#answer(request, response).catch((error) => response.destroy(error));
  });

  private constructor(root: Uint8Array) {
    this.executor = new Executor(this.ledger, root);
    this.executor.epoch = () => this.epoch;
  }

  /**
   * @param root DER of the root certificate that the model of `nitro_attestation` pins
   * @param port to listen on; with 0, the system chooses
   * @throws ConfigError if the node can't listen on the port
   */
  static async start(root: Uint8Array, port = 0): Promise<LoopbackNode> {
    const node = new LoopbackNode(root);
    await listen(node.#server, 'PORT', port);
    return node;
  }

  /** The ledger in the state that reads show. */
  get #visible(): Ledger {
    return this.#before('shownMs');
  }

  /** The ledger in the state that listings of owned objects show. */
  get #listed(): Ledger {
    return this.#before('listedMs');
  }

  #before(at: 'shownMs' | 'listedMs'): Ledger {
    const now = performance.now();
    this.#hidden = this.#hidden.filter(({ listedMs }) => now < listedMs);
    return this.#hidden.find((hidden) => now < hidden[at])?.before ?? this.ledger;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').slice(1);
    const name = path.split('/').at(-1) ?? '';
    if (this.servesPages && this.#answerPage(request, response, path)) return;
    if (this.isFaucet && path === 'v2/gas') {
      return await answerFaucet(request, response, (address, mist) => this.ledger.give(address, mist));
    }
    if (!isGrpcWeb(request))
      return void response.writeHead(415, { 'content-type': 'text/plain' }).end(ONLY_GRPC);
    const method = Object.hasOwn(this.#methods, path) ? this.#methods[path] : undefined;
    if (method) this.calls.push(name);
    if (this.calls.length > MAX_CALLS) this.calls.shift();
    const fault = this.faults.get(name);
    if (fault === 'reset') return void request.socket.destroy();
    if (fault === 'hang') return;
    const message = await readMessage(request, response);
    if (message === null) return;
    response.writeHead(200, { 'content-type': 'application/grpc-web+proto' });
    if (fault === 'garbage') return void response.end(frame(0, Buffer.from('<html>')));
    if (typeof fault === 'object') {
      return void response.end(trailer(GrpcStatusCode[fault.status], fault.message));
    }
    const { body, isOk } = await callMethod(method, path, message);
    if (fault === undefined || !isOk) return void response.end(body);
    if (fault === 'executes, and says ABORTED') {
      return void response.end(trailer(GrpcStatusCode.ABORTED, 'Transaction needs to be rebuilt'));
    }
    request.socket.destroy();
  }

  /** Answers a page's preflight, or its request for the ledger. @returns whether it answered the request */
  #answerPage(request: IncomingMessage, response: ServerResponse, path: string): boolean {
    if (answersPreflight(request, response)) return true;
    if (request.method !== 'GET' || path !== LEDGER_PATH) return false;
    response.setHeader('content-type', 'application/json').setHeader('cache-control', 'no-store');
    response.end(JSON.stringify(this.#history.page(this.#visible)));
    return true;
  }

  readonly #methods: Readonly<Record<string, Method>> = {
    'sui.rpc.v2.LedgerService/BatchGetObjects': (bytes) => {
      const { requests, readMask } = GrpcTypes.BatchGetObjectsRequest.fromBinary(bytes);
      const objects = requests.map(({ objectId = '' }): GrpcTypes.GetObjectResult => {
        const visible = this.#visible;
        const id = normalizeSuiAddress(objectId);
        const object = this.executor.withLedger(visible).find(id);
        if (object) return { result: { oneofKind: 'object', object: this.#object(object, readMask) } };
        if (visible.packages.has(id)) {
          const object = describePackageObject(visible, id);
          const publication = previous(this.transactions.publisherOf(id));
          return { result: { oneofKind: 'object', object: { ...object, ...publication } } };
        }
        const error = {
          code: GrpcStatusCode.NOT_FOUND,
          message: `Object ${objectId} not found`,
          details: [],
        };
        return { result: { oneofKind: 'error', error } };
      });
      return GrpcTypes.BatchGetObjectsResponse.toBinary({ objects });
    },
    'sui.rpc.v2.LedgerService/GetServiceInfo': () =>
      GrpcTypes.GetServiceInfoResponse.toBinary(
        GrpcTypes.GetServiceInfoResponse.create({
          chainId: this.chainId,
          timestamp: toTimestamp(this.executor.now()),
          lowestAvailableCheckpoint: this.lowestCheckpoint,
        }),
      ),
    'sui.rpc.v2.LedgerService/GetEpoch': () => {
      const systemState = GrpcTypes.SystemState.create({ epoch: this.epoch, epochStartTimestampMs: 1n });
      const epoch = GrpcTypes.Epoch.create({ epoch: this.epoch, systemState, referenceGasPrice: 1000n });
      return GrpcTypes.GetEpochResponse.toBinary({ epoch });
    },
    'sui.rpc.v2.LedgerService/GetTransaction': (bytes) => {
      const { digest = '' } = GrpcTypes.GetTransactionRequest.fromBinary(bytes);
      const transaction = this.#isVisible(digest) ? this.transactions.get(digest) : undefined;
      if (!transaction) throw new Refusal('NOT_FOUND', `Transaction ${digest} not found`);
      return GrpcTypes.GetTransactionResponse.toBinary({ transaction });
    },
    'sui.rpc.v2.LedgerService/ListTransactions': (bytes) => this.transactions.list(bytes),
    'sui.rpc.v2.LedgerService/ListEvents': (bytes) => this.events.list(bytes),
    'sui.rpc.v2.StateService/ListOwnedObjects': (bytes) => {
      const { owner = '', objectType, readMask } = GrpcTypes.ListOwnedObjectsRequest.fromBinary(bytes);
      const ledger = this.#listed;
      const objects = ledger
        .owned(owner)
        .filter(({ type }) => objectType === undefined || isOfType(type, objectType))
        .map((object) => {
          const balance = ledger.isCoin(object) ? { balance: ledger.balanceOf(object) } : {};
          return { ...this.#object(object, readMask), ...balance };
        });
      return GrpcTypes.ListOwnedObjectsResponse.toBinary({ objects });
    },
    'sui.rpc.v2.StateService/GetBalance': (bytes) => {
      const { owner = '', coinType = '0x2::sui::SUI' } = GrpcTypes.GetBalanceRequest.fromBinary(bytes);
      const type = normalizeStructTag(coinType);
      const ownBalance = sumBalances(this.#listed, owner).find((balance) => balance.coinType === type);
      const zeroBalance = { coinType: type, balance: 0n, coinBalance: 0n };
      return GrpcTypes.GetBalanceResponse.toBinary({ balance: ownBalance ?? zeroBalance });
    },
    'sui.rpc.v2.StateService/ListBalances': (bytes) => {
      const { owner = '' } = GrpcTypes.ListBalancesRequest.fromBinary(bytes);
      return GrpcTypes.ListBalancesResponse.toBinary({ balances: sumBalances(this.#listed, owner) });
    },
    'sui.rpc.v2.StateService/ListDynamicFields': (bytes) => {
      const { parent = '', pageToken, pageSize } = GrpcTypes.ListDynamicFieldsRequest.fromBinary(bytes);
      const size = Math.min(pageSize ?? PAGE_SIZE, PAGE_SIZE);
      const from = pageToken ? Number(Buffer.from(pageToken).toString()) : 0;
      const all = this.#visible.fields(parent);
      const dynamicFields = all.slice(from, from + size).map(({ id, content }) =>
        GrpcTypes.DynamicField.create({
          kind: GrpcTypes.DynamicField_DynamicFieldKind.FIELD,
          parent,
          fieldId: id,
          name: { name: CLAIMED, value: content.subarray(32, 64) },
          valueType: '0x2::derived_object::ClaimedStatus',
        }),
      );
      const hasMore = from + size < all.length;
      return GrpcTypes.ListDynamicFieldsResponse.toBinary({
        dynamicFields,
        ...(hasMore && { nextPageToken: Buffer.from(String(from + size)) }),
      });
    },
    'sui.rpc.v2.MovePackageService/GetPackage': (bytes) => {
      const { packageId = '' } = GrpcTypes.GetPackageRequest.fromBinary(bytes);
      return GrpcTypes.GetPackageResponse.toBinary({
        package: describePackage(this.#visible, packageId),
      });
    },
    'sui.rpc.v2.MovePackageService/ListPackageVersions': (bytes) => {
      const { packageId = '' } = GrpcTypes.ListPackageVersionsRequest.fromBinary(bytes);
      const versions = listPackageVersions(this.#visible, packageId);
      return GrpcTypes.ListPackageVersionsResponse.toBinary({ versions });
    },
    'sui.rpc.v2.MovePackageService/GetFunction': (bytes) => {
      const descriptor = findFunction(this.#visible, GrpcTypes.GetFunctionRequest.fromBinary(bytes));
      return GrpcTypes.GetFunctionResponse.toBinary({ function: descriptor });
    },
    'sui.rpc.v2.MovePackageService/GetDatatype': (bytes) => {
      const datatype = findDatatype(this.#visible, GrpcTypes.GetDatatypeRequest.fromBinary(bytes));
      return GrpcTypes.GetDatatypeResponse.toBinary({ datatype });
    },
    'sui.rpc.v2.SignatureVerificationService/VerifySignature': async (bytes) => {
      const request = GrpcTypes.VerifySignatureRequest.fromBinary(bytes);
      const { message, signature, address = '' } = request;
      const value = message?.value ?? new Uint8Array();
      const scope = message?.name as Scope;
      const data = scope === 'PersonalMessage' ? Uint8Array.from(bcs.byteVector().parse(value)) : value;
      const reason = await this.verify(
        data,
        toBase64(signature?.bcs?.value ?? new Uint8Array()),
        address,
        scope,
      )
        .then(() => undefined)
        .catch((error: Error) => error.message);
      return GrpcTypes.VerifySignatureResponse.toBinary({
        isValid: reason === undefined,
        ...(reason !== undefined && { reason }),
      });
    },
    'sui.rpc.v2.TransactionExecutionService/SimulateTransaction': async (bytes) => {
      const { transaction, checks } = GrpcTypes.SimulateTransactionRequest.fromBinary(bytes);
      const isChecked = checks !== GrpcTypes.SimulateTransactionRequest_TransactionChecks.DISABLED;
      const visible = this.#visible;
      const executor = visible === this.ledger ? this.executor : this.executor.withLedger(visible);
      const { resolved, status, gas, results, changedObjects } = await executor.simulate(
        transaction as GrpcTypes.Transaction,
        isChecked,
      );
      const effects = { status, epoch: this.epoch, gasUsed: gas, changedObjects: [...changedObjects] };
      return GrpcTypes.SimulateTransactionResponse.toBinary({
        transaction: GrpcTypes.ExecutedTransaction.create({
          transaction: resolved,
          effects: GrpcTypes.TransactionEffects.create(effects),
        }),
        commandOutputs: toCommandOutputs(results),
      });
    },
    'sui.rpc.v2.TransactionExecutionService/ExecuteTransaction': async (bytes) => {
      const { transaction, signatures } = GrpcTypes.ExecuteTransactionRequest.fromBinary(bytes);
      const data = transaction?.bcs?.value ?? new Uint8Array();
      const digest = TransactionDataBuilder.getDigestFromBytes(data);
      const { V1: parsed } = bcs.TransactionData.parse(data);
      // The first signature is the sender's. The second is that of a sponsor who pays the gas.
      const signers = [...new Set([parsed.sender, parsed.gasData.owner ?? parsed.sender])];
      if (signatures.length !== signers.length) {
        const message = `Expect ${signers.length} signer signatures but got ${signatures.length}`;
        throw new Refusal('INVALID_ARGUMENT', message);
      }
      for (const [index, signer] of signers.entries()) {
        const signature = toBase64(signatures[index]?.bcs?.value ?? new Uint8Array());
        await this.verify(data, signature, signer).catch(({ message }: Error) => {
          throw new Refusal('INVALID_ARGUMENT', `Invalid user signature: ${message}`);
        });
      }
      return await this.#inTurn(parsed, () => this.#execute(parsed, data, digest, signatures));
    },
  };

  /**
   * Executes transactions in turn, since an engine may take seconds. The owned objects of a transaction are
   * locked until it has ended.
   */
  async #inTurn<T>(data: TransactionData, execute: () => Promise<T>): Promise<T> {
    const locks = ownedInputs(data);
    const lockedReference = locks.find(({ objectId }) => this.#locked.has(objectId));
    if (lockedReference !== undefined) throw lockedRefusal(lockedReference);
    for (const { objectId } of locks) this.#locked.add(objectId);
    const turn = this.#last.then(execute);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      for (const { objectId } of locks) this.#locked.delete(objectId);
    }
  }

  async #execute(
    data: TransactionData,
    bytes: Uint8Array,
    digest: string,
    signatures: GrpcTypes.UserSignature[],
  ): Promise<Uint8Array> {
    const before = this.ledger.copy();
    const { effects: executorEffects, events: emittedEvents } = await this.executor.execute(data, digest);
    const atMs = this.executor.now();
    const effects = this.transactions.record(executorEffects, { sender: data.sender, atMs, bytes });
    const events = this.events.record(emittedEvents, data, digest);
    const now = performance.now();
    const listedMs = now + Math.max(this.lagMs, this.listingLagMs);
    if (listedMs > now) this.#hidden.push({ shownMs: now + this.lagMs, listedMs, before });
    this.#history.record(data, digest, effects, events);
    return GrpcTypes.ExecuteTransactionResponse.toBinary({
      transaction: GrpcTypes.ExecutedTransaction.create({
        digest,
        signatures,
        effects,
        events: { events },
        ...describeEmptyTransaction(data),
      }),
    });
  }

  /** Returns whether reads show that the transaction was executed. */
  #isVisible(digest: string): boolean {
    return this.#visible.executed.includes(digest);
  }

  #object(object: LedgerObject, readMask: ReadMask): GrpcTypes.Object {
    const sentObject = this.lie(object);
    const json = readMask?.paths.includes('json') ? formatObjectJson(this.ledger, sentObject) : undefined;
    return {
      ...toGrpcObject(sentObject),
      ...(json && { json }),
      ...previous(this.transactions.writerOf(object)),
    };
  }
}

const ONLY_GRPC =
  'A model of a Sui node: it speaks gRPC-web only. Use SuiGrpcClient of @mysten/sui/grpc, not JSON-RPC or GraphQL.\n';

/** Returns whether a type passes a filter. @param filter a type, or a generic type for all its instances */
function isOfType(type: string, filter: string): boolean {
  const filterType = normalizeStructTag(filter);
  return type === filterType || type.startsWith(`${filterType}<`);
}

function previous(previousTransaction: string | undefined): { previousTransaction?: string } {
  return previousTransaction === undefined ? {} : { previousTransaction };
}

/** Runs a method of the node. @returns the body of the answer, and whether the method succeeded */
async function callMethod(
  method: Method | undefined,
  path: string,
  request: Uint8Array,
): Promise<{ readonly body: Buffer; readonly isOk: boolean }> {
  try {
    if (!method) throw new Refusal('UNIMPLEMENTED', `the loopback node has no ${path}`);
    const messages = [await method(request)].flat();
    const frames = messages.map((message) => frame(0, message));
    return { body: Buffer.concat([...frames, trailer(GrpcStatusCode.OK)]), isOk: true };
  } catch (error) {
    const { status, message } = error instanceof Refusal ? error : describeError(error);
    return { body: trailer(GrpcStatusCode[status], message), isOk: false };
  }
}

function describeError(error: unknown): Pick<Refusal, 'status' | 'message'> {
  return { status: 'INTERNAL', message: `the loopback node failed: ${(error as Error).message}` };
}
