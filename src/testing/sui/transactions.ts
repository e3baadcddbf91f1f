/** The transactions that a loopback node executed, and which of them wrote an object. */
import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';
import { Refusal } from './failures.ts';
import type { LedgerObject } from './ledger.ts';

export class TransactionLog {
  readonly #executed = new Map<string, GrpcTypes.ExecutedTransaction>();
  /** The digests of transactions, by the id and version of an object that they wrote. */
  readonly #writers = new Map<string, string>();
  /** The node has pruned every transaction before this time, in milliseconds since 1970. */
  prunedBeforeMs = 0;

  /** Returns the effects with the transactions that wrote the versions before. */
  record(
    effects: GrpcTypes.TransactionEffects,
    { sender, atMs, bytes }: { readonly sender: string; readonly atMs: number; readonly bytes: Uint8Array },
  ): GrpcTypes.TransactionEffects {
    const { transactionDigest: digest = '', changedObjects } = effects;
    const dependencies = new Set(
      changedObjects.flatMap(({ objectId, inputVersion }) =>
        inputVersion === undefined ? [] : (this.#writers.get(`${objectId} ${inputVersion}`) ?? []),
      ),
    );
    for (const { objectId, outputVersion } of changedObjects) {
      this.#writers.set(`${objectId} ${outputVersion}`, digest);
    }
    const complete = { ...effects, dependencies: [...dependencies] };
    this.#executed.set(
      digest,
      GrpcTypes.ExecutedTransaction.create({
        digest,
        transaction: { sender, bcs: { name: 'TransactionData', value: bytes } },
        effects: complete,
        checkpoint: BigInt(this.#executed.size + 1),
        timestamp: timestampOf(atMs),
      }),
    );
    return complete;
  }

  /** The transaction that wrote an object as it is, if a transaction did. */
  writerOf({ id, version }: Pick<LedgerObject, 'id' | 'version'>): string | undefined {
    return this.#writers.get(`${id} ${version}`);
  }

  /** The transaction that a package is of, if a transaction published it. */
  publisherOf(packageId: string): string | undefined {
    for (const [digest, { effects }] of this.#executed) {
      if (effects?.changedObjects.some(({ objectId }) => objectId === packageId)) return digest;
    }
    return undefined;
  }

  /** Undefined if it was not executed, or is pruned. */
  get(digest: string): GrpcTypes.ExecutedTransaction | undefined {
    const transaction = this.#executed.get(digest);
    const { seconds = 0n } = transaction?.timestamp ?? {};
    return Number(seconds) * 1000 < this.prunedBeforeMs ? undefined : transaction;
  }

  /** Answers `ListTransactions` of one object, on one page: those that changed it, the oldest first. */
  list(request: Uint8Array): Uint8Array[] {
    const { filter } = GrpcTypes.ListTransactionsRequest.fromBinary(request);
    const wanted = filter?.terms[0]?.literals[0]?.predicate;
    if (wanted?.oneofKind !== 'affectedObject') {
      throw new Refusal('UNIMPLEMENTED', 'the model lists transactions of an object only');
    }
    const { objectId } = wanted.affectedObject;
    const frames: GrpcTypes.ListTransactionsResponse[] = [...this.#executed.keys()]
      .flatMap((digest) => this.get(digest) ?? [])
      .filter(({ effects }) => effects?.changedObjects.some((changed) => changed.objectId === objectId))
      .map((transaction) => ({ transaction }));
    frames.push({ end: { reason: GrpcTypes.QueryEndReason.LEDGER_TIP } });
    return frames.map((frame) => GrpcTypes.ListTransactionsResponse.toBinary(frame));
  }

  /** Answers `BatchGetTransactions`. @param isVisible whether reads show a transaction already */
  batch(request: Uint8Array, isVisible: (digest: string) => boolean): Uint8Array {
    const { digests } = GrpcTypes.BatchGetTransactionsRequest.fromBinary(request);
    const transactions = digests.map((digest): GrpcTypes.GetTransactionResult => {
      const transaction = isVisible(digest) ? this.get(digest) : undefined;
      if (transaction) return { result: { oneofKind: 'transaction', transaction } };
      const message = `Transaction ${digest} not found`;
      return {
        result: { oneofKind: 'error', error: { code: GrpcStatusCode.NOT_FOUND, message, details: [] } },
      };
    });
    return GrpcTypes.BatchGetTransactionsResponse.toBinary({ transactions });
  }

  /** Answers `GetCheckpoint`, for the lowest one that the node has. */
  checkpoint(): Uint8Array {
    const summary = GrpcTypes.CheckpointSummary.create({ timestamp: timestampOf(this.prunedBeforeMs) });
    return GrpcTypes.GetCheckpointResponse.toBinary({
      checkpoint: GrpcTypes.Checkpoint.create({ sequenceNumber: 0n, summary }),
    });
  }
}

/** @param ms since 1970 */
export function timestampOf(ms: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(ms / 1000);
  return { seconds: BigInt(whole), nanos: Math.floor(ms - whole * 1000) * 1_000_000 };
}
