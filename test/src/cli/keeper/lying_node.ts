/**
 * A Sui node that lies: a proxy on loopback in front of a model of a node. It changes the answers of methods.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bcs } from '@mysten/sui/bcs';
import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { frame, readMessage, trailer } from '../../../../src/devnet/grpc_web.ts';
import type { LoopbackNode } from '../../../../src/devnet/node.ts';

/** Changes the message of an answer, in protobuf. An error of the node stays unchanged. */
export type Lie = (answer: Uint8Array) => Uint8Array;

/** Gas budget and gas price of a transaction that the node received, in MIST. */
export interface Signed {
  readonly budget: bigint;
  readonly price: bigint;
}

export class LyingNode {
  /** Lies by the name of the method. */
  readonly lies = new Map<string, Lie>();
  /** Transactions that it received with a signature. */
  readonly signed: Signed[] = [];
  /** Digests of these transactions. */
  readonly digests: string[] = [];
  /** Whether it swallows transactions, and claims that they were executed. */
  swallows = false;
  /** Failure of the node, if any: it ends connections, or leaves them without an answer. */
  silence: 'reset' | 'hang' | undefined;
  #swallowed: Uint8Array = new Uint8Array();
  readonly #node: LoopbackNode;
  readonly #server = createServer(async (request, response) => {
    const path = request.url ?? '';
    const name = path.split('/').at(-1) ?? '';
    if (this.silence === 'reset') return void request.socket.destroy();
    if (this.silence === 'hang') return;
    const message = (await readMessage(request, response)) ?? new Uint8Array();
    if (name === 'ExecuteTransaction') this.#note(message);
    if (this.swallows && name === 'ExecuteTransaction') this.#swallowed = createSuccess(message);
    if (this.swallows && (name === 'ExecuteTransaction' || name === 'GetTransaction')) {
      response.writeHead(200, { 'content-type': 'application/grpc-web+proto' });
      // The answers of both methods have the transaction in the same field.
      return void response.end(Buffer.concat([frame(0, this.#swallowed), trailer(GrpcStatusCode.OK)]));
    }
    const answer = await fetch(this.#node.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/grpc-web+proto' },
      body: new Uint8Array(frame(0, message)),
    });
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { 'content-type': 'application/grpc-web+proto' });
    response.end(this.#applyLie(name, body));
  });

  private constructor(node: LoopbackNode) {
    this.#node = node;
  }

  static async start(node: LoopbackNode): Promise<LyingNode> {
    const lying = new LyingNode(node);
    await new Promise<void>((resolve) => {
      lying.#server.listen(0, '127.0.0.1', resolve);
    });
    return lying;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sum of the gas budgets of all received transactions, in MIST. */
  get signedMist(): bigint {
    return this.signed.reduce((sum, { budget }) => sum + budget, 0n);
  }

  #note(message: Uint8Array): void {
    const { transaction } = GrpcTypes.ExecuteTransactionRequest.fromBinary(message);
    const bytes = transaction?.bcs?.value ?? new Uint8Array();
    const { gasData } = bcs.TransactionData.parse(bytes).V1;
    this.digests.push(TransactionDataBuilder.getDigestFromBytes(bytes));
    this.signed.push({ budget: BigInt(gasData.budget ?? 0), price: BigInt(gasData.price ?? 0) });
  }

  #applyLie(name: string, body: Buffer): Buffer {
    const lie = this.lies.get(name);
    const isMessage = body.length > 0 && body[0] === 0;
    if (lie === undefined || !isMessage) return body;
    const end = 5 + body.readUInt32BE(1);
    return Buffer.concat([frame(0, lie(body.subarray(5, end))), body.subarray(end)]);
  }
}

const NO_GAS = { computationCost: 0n, storageCost: 0n, storageRebate: 0n, nonRefundableStorageFee: 0n };

/** Returns the answer of a node for a successful transaction. */
function createSuccess(request: Uint8Array): Uint8Array {
  const { transaction, signatures } = GrpcTypes.ExecuteTransactionRequest.fromBinary(request);
  const bytes = transaction?.bcs?.value ?? new Uint8Array();
  const digest = TransactionDataBuilder.getDigestFromBytes(bytes);
  const effects = GrpcTypes.TransactionEffects.create({
    version: 2,
    status: { success: true },
    epoch: 100n,
    transactionDigest: digest,
    gasUsed: NO_GAS,
  });
  return GrpcTypes.ExecuteTransactionResponse.toBinary({
    transaction: GrpcTypes.ExecutedTransaction.create({ digest, signatures, effects }),
  });
}

/** Changes the gas in the effects to nothing. */
export const noGas: Lie = (answer) => {
  const response = GrpcTypes.ExecuteTransactionResponse.fromBinary(answer);
  const { effects } = response.transaction ?? {};
  if (effects) effects.gasUsed = NO_GAS;
  return GrpcTypes.ExecuteTransactionResponse.toBinary(response);
};

/** Leaves every registration out of a list. */
export const noRegistrations: Lie = () => GrpcTypes.ListDynamicFieldsResponse.toBinary({ dynamicFields: [] });

/** Claims that no enclave, and no mark of a registration, exists. */
export const noEnclaves: Lie = (answer) => {
  const { objects } = GrpcTypes.BatchGetObjectsResponse.fromBinary(answer);
  const error = { code: GrpcStatusCode.NOT_FOUND, message: 'Object not found', details: [] };
  const isHidden = ({ result: outcome }: GrpcTypes.GetObjectResult) =>
    outcome.oneofKind === 'object' &&
    /::enclave::Enclave<|derived_object/.test(outcome.object.objectType ?? '');
  return GrpcTypes.BatchGetObjectsResponse.toBinary({
    objects: objects.map((object) => (isHidden(object) ? { result: { oneofKind: 'error', error } } : object)),
  });
};

/** Shows an object as an earlier answer had it. */
export function outdated(objectId: string, recorded: Uint8Array = new Uint8Array()): Lie {
  const isTarget = ({ result: outcome }: GrpcTypes.GetObjectResult) =>
    outcome.oneofKind === 'object' && outcome.object.objectId === objectId;
  const old = GrpcTypes.BatchGetObjectsResponse.fromBinary(recorded).objects.find(isTarget);
  return (answer) => {
    const { objects } = GrpcTypes.BatchGetObjectsResponse.fromBinary(answer);
    return GrpcTypes.BatchGetObjectsResponse.toBinary({
      objects: objects.map((object) => (old && isTarget(object) ? old : object)),
    });
  };
}

/** Claims this price for a unit of gas, in MIST. */
export function gasPrice(price: bigint): Lie {
  return (answer) => {
    const response = GrpcTypes.SimulateTransactionResponse.fromBinary(answer);
    const { gasPayment } = response.transaction?.transaction ?? {};
    if (gasPayment) gasPayment.price = price;
    return GrpcTypes.SimulateTransactionResponse.toBinary(response);
  };
}

/** Lets every simulation succeed, even if the chain would refuse the transaction. */
export function acceptSimulations(node: LoopbackNode): void {
  const { executor } = node;
  const blind = executor.withLedger(node.ledger);
  blind.engine = async () => ({ status: { success: true }, results: [], events: [], published: undefined });
  executor.simulate = async (...simulated) => await blind.simulate(...simulated);
}
