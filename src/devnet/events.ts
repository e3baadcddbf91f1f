/** Records and lists the events of a loopback node. */
import type { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { parseStructTag } from '@mysten/sui/utils';
import type { Emitted } from './engine.ts';

type TransactionData = typeof bcs.TransactionData.$inferType.V1;

/** Maximum number of events in one answer, and of events that it examines. Both are small, as tests need. */
const PAGE = 3;
const SCAN = 8;

export class EventLog {
  readonly #events: GrpcTypes.Event[] = [];
  #checkpoint = 0n;

  /** Records the events of an executed transaction, and returns them. */
  record(emitted: readonly Emitted[], { sender, kind }: TransactionData, digest: string): GrpcTypes.Event[] {
    this.#checkpoint += 1n;
    const { commands = [] } = kind.ProgrammableTransaction ?? {};
    const events = emitted.map(({ type: eventType, content: value, command }, eventIndex) => {
      const { address, module } = parseStructTag(eventType);
      const called = commands[command]?.MoveCall;
      return GrpcTypes.Event.create({
        packageId: called?.package ?? address,
        module: called?.module ?? module,
        sender,
        eventType,
        contents: GrpcTypes.Bcs.create({ name: eventType, value }),
        checkpoint: this.#checkpoint,
        transactionDigest: digest,
        eventIndex,
      });
    });
    this.#events.push(...events);
    return events;
  }

  /**
   * Answers `LedgerService.ListEvents`, with a frame for each event. The last frame says why the list ends
   * there.
   */
  list(request: Uint8Array): Uint8Array[] {
    const { filter, options } = GrpcTypes.ListEventsRequest.fromBinary(request);
    const descending = options?.ordering === GrpcTypes.Ordering.DESCENDING;
    const step = descending ? -1 : 1;
    const start = descending
      ? (parseCursor(options?.before) ?? this.#events.length)
      : parseCursor(options?.after);
    const limit = Math.min(options?.limit ?? PAGE, PAGE);
    const { LEDGER_TIP, SCAN_LIMIT, ITEM_LIMIT } = GrpcTypes.QueryEndReason;
    const frames: GrpcTypes.ListEventsResponse[] = [];
    let at = start ?? -1;
    let reason: GrpcTypes.QueryEndReason | undefined;
    for (let scanned = 0; reason === undefined; scanned += 1) {
      const event = this.#events[at + step];
      if (event === undefined) reason = LEDGER_TIP;
      else if (scanned === SCAN) reason = SCAN_LIMIT;
      if (reason !== undefined || event === undefined) break;
      at += step;
      if (!matches(event, filter)) continue;
      if (frames.length + 1 === limit) reason = ITEM_LIMIT;
      frames.push({ event, watermark: watermark(at), ...(reason !== undefined && { end: { reason } }) });
    }
    if (reason !== ITEM_LIMIT)
      frames.push({ watermark: watermark(at), end: { reason: reason ?? LEDGER_TIP } });
    return frames.map((frame) =>
      GrpcTypes.ListEventsResponse.toBinary(GrpcTypes.ListEventsResponse.create(frame)),
    );
  }
}

function watermark(at: number): GrpcTypes.Watermark {
  return GrpcTypes.Watermark.create({ cursor: Buffer.from(String(at)) });
}

function parseCursor(cursor: Uint8Array | undefined): number | undefined {
  return cursor && Number(Buffer.from(cursor).toString());
}

/**
 * Returns whether an event has the type of a filter: `package::module`, `package::module::Name` with any type
 * arguments, or the whole type.
 */
function matches({ eventType = '' }: GrpcTypes.Event, filter: GrpcTypes.EventFilter | undefined): boolean {
  const predicate = filter?.terms[0]?.literals[0]?.predicate;
  if (predicate?.oneofKind !== 'eventType') return filter === undefined;
  const { eventType: type = '' } = predicate.eventType;
  return eventType === type || eventType.startsWith(`${type}::`) || eventType.startsWith(`${type}<`);
}
