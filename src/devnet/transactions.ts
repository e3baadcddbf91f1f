/** Records the transactions that a loopback node executed, and the objects that they wrote. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { Refusal } from './failures.ts';
import type { LedgerObject } from './ledger.ts';

export class TransactionLog {
  /** Answers leave out transactions before this time, in milliseconds since 1970. */
  prunedBeforeMs = 0;
  readonly #executed = new Map<string, GrpcTypes.ExecutedTransaction>();
  /** Digests of transactions, by id and version of an object that they wrote. */
  readonly #writers = new Map<string, string>();

  /** Records a transaction. @returns its effects, with the transactions that wrote the previous versions */
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
    const completeEffects = { ...effects, dependencies: [...dependencies] };
    this.#executed.set(
      digest,
      GrpcTypes.ExecutedTransaction.create({
        digest,
        transaction: { sender, bcs: { name: 'TransactionData', value: bytes } },
        effects: completeEffects,
        checkpoint: BigInt(this.#executed.size + 1),
        timestamp: toTimestamp(atMs),
      }),
    );
    return completeEffects;
  }

  /** Returns the transaction that wrote the present version of an object; undefined if none did. */
  writerOf({ id, version }: Pick<LedgerObject, 'id' | 'version'>): string | undefined {
    return this.#writers.get(`${id} ${version}`);
  }

  /** Returns the transaction that published a package; undefined if none did. */
  publisherOf(packageId: string): string | undefined {
    for (const [digest, { effects }] of this.#executed) {
      if (effects?.changedObjects.some(({ objectId }) => objectId === packageId)) return digest;
    }
    return undefined;
  }

  /** Returns a transaction; undefined if it was not executed or is pruned. */
  get(digest: string): GrpcTypes.ExecutedTransaction | undefined {
    const transaction = this.#executed.get(digest);
    const { seconds = 0n } = transaction?.timestamp ?? {};
    return Number(seconds) * 1000 < this.prunedBeforeMs ? undefined : transaction;
  }

  /**
   * Answers `ListTransactions` for an object, on one page: the transactions that changed it, the oldest
   * first.
   */
  list(request: Uint8Array): Uint8Array[] {
    const { filter } = GrpcTypes.ListTransactionsRequest.fromBinary(request);
    const predicate = filter?.terms[0]?.literals[0]?.predicate;
    if (predicate?.oneofKind !== 'affectedObject') {
      throw new Refusal('UNIMPLEMENTED', 'the model lists only the transactions of an object');
    }
    const { objectId } = predicate.affectedObject;
    const frames: GrpcTypes.ListTransactionsResponse[] = [...this.#executed.keys()]
      .flatMap((digest) => this.get(digest) ?? [])
      .filter(({ effects }) => effects?.changedObjects.some((changed) => changed.objectId === objectId))
      .map((transaction) => ({ transaction }));
    frames.push({ end: { reason: GrpcTypes.QueryEndReason.LEDGER_TIP } });
    return frames.map((frame) => GrpcTypes.ListTransactionsResponse.toBinary(frame));
  }
}

/** Converts a time to the form of gRPC. @param ms milliseconds since 1970 */
export function toTimestamp(ms: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(ms / 1000);
  return { seconds: BigInt(whole), nanos: Math.floor(ms - whole * 1000) * 1_000_000 };
}
