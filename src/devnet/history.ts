/**
 * Lists the transactions, objects and events of a loopback node in JSON: `GET /model/ledger`. Real nodes have
 * no such interface, so only development pages may use it.
 */
import type { GrpcTypes } from '@mysten/sui/grpc';
import type { TransactionData } from './commands.ts';
import type { Ledger } from './ledger.ts';

export const LEDGER_PATH = 'model/ledger';

/** Maximum number of entries of each kind in an answer. The latest entries come first. */
const MAX_LISTED = 200;
/** Maximum length of an engine's reason for a failure, in characters. */
const MAX_REASON = 300;

interface TransactionEntry {
  readonly digest: string;
  readonly sender: string;
  readonly atMs: number;
  /** Functions that the transaction called, and kinds of its other commands. */
  readonly calls: readonly string[];
  /** Reason of the failure; null if the transaction succeeded. */
  readonly failure: string | null;
  /** Cost in MIST, minus the refund. */
  readonly gas: string;
}

interface EventEntry {
  readonly type: string;
  readonly digest: string;
  readonly sender: string;
}

export class History {
  readonly #transactions: TransactionEntry[] = [];
  readonly #events: EventEntry[] = [];

  record(
    { sender, kind }: TransactionData,
    digest: string,
    { status, gasUsed }: GrpcTypes.TransactionEffects,
    events: readonly GrpcTypes.Event[],
  ): void {
    const { commands = [] } = kind.ProgrammableTransaction ?? {};
    const { computationCost = 0n, storageCost = 0n, storageRebate = 0n } = gasUsed ?? {};
    this.#transactions.push({
      digest,
      sender,
      atMs: Date.now(),
      calls: commands.map(({ $kind, MoveCall: call }) =>
        call ? `${call.package}::${call.module}::${call.function}` : $kind,
      ),
      failure: status?.success === false ? describeReason(status.error) : null,
      gas: String(computationCost + storageCost - storageRebate),
    });
    this.#events.push(...events.map(({ eventType = '' }) => ({ type: eventType, digest, sender })));
  }

  /** Returns the latest entries of each kind, and the total number of each kind. */
  page({ objects }: Ledger): object {
    const all = [...objects.values()].map(({ id, type, owner, version }) => ({
      id,
      type,
      version: String(version),
      owner: 'address' in owner ? owner.address : owner.kind,
      kind: owner.kind,
    }));
    const newest = all.toSorted((a, b) => Number(BigInt(b.version) - BigInt(a.version)));
    return {
      model: true,
      counts: {
        transactions: this.#transactions.length,
        objects: all.length,
        events: this.#events.length,
      },
      transactions: this.#transactions.toReversed().slice(0, MAX_LISTED),
      objects: newest.slice(0, MAX_LISTED),
      events: this.#events.toReversed().slice(0, MAX_LISTED),
    };
  }
}

function describeReason(error: GrpcTypes.ExecutionError | undefined): string {
  return (error?.description ?? 'it failed').slice(0, MAX_REASON);
}
