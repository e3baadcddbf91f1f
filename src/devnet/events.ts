/** Records and lists the events of a loopback node. */
import type { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { parseStructTag } from '@mysten/sui/utils';
import type { Emitted } from './engine.ts';

type TransactionData = typeof bcs.TransactionData.$inferType.V1;

/** Maximum number of events in one answer. It is small, so that tests get several pages. */
const PAGE_SIZE = 3;
/** Maximum number of events that one request examines. */
const MAX_SCANNED = 8;

export class EventLog {
  readonly #events: GrpcTypes.Event[] = [];
  #checkpoint = 0n;

  /** Records the events of an executed transaction, and returns them. */
  record(emitted: readonly Emitted[], { sender, kind }: TransactionData, digest: string): GrpcTypes.Event[] {
    this.#checkpoint += 1n;
    const { commands = [] } = kind.ProgrammableTransaction ?? {};
    const events = emitted.map(({ type: eventType, content: value, command }, eventIndex) => {
      const { address, module } = parseStructTag(eventType);
      const call = commands[command]?.MoveCall;
      return GrpcTypes.Event.create({
        packageId: call?.package ?? address,
        module: call?.module ?? module,
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
    const limit = Math.min(options?.limit ?? PAGE_SIZE, PAGE_SIZE);
    const { LEDGER_TIP, SCAN_LIMIT, ITEM_LIMIT } = GrpcTypes.QueryEndReason;
    const frames: GrpcTypes.ListEventsResponse[] = [];
    let index = start ?? -1;
    let reason: GrpcTypes.QueryEndReason | undefined;
    for (let scanned = 0; reason === undefined; scanned += 1) {
      const event = this.#events[index + step];
      if (event === undefined) reason = LEDGER_TIP;
      else if (scanned === MAX_SCANNED) reason = SCAN_LIMIT;
      if (reason !== undefined || event === undefined) break;
      index += step;
      if (!matches(event, filter)) continue;
      if (frames.length + 1 === limit) reason = ITEM_LIMIT;
      frames.push({
        event,
        watermark: createWatermark(index),
        ...(reason !== undefined && { end: { reason } }),
      });
    }
    if (reason !== ITEM_LIMIT)
      frames.push({ watermark: createWatermark(index), end: { reason: reason ?? LEDGER_TIP } });
    return frames.map((frame) =>
      GrpcTypes.ListEventsResponse.toBinary(GrpcTypes.ListEventsResponse.create(frame)),
    );
  }
}

function createWatermark(index: number): GrpcTypes.Watermark {
  return GrpcTypes.Watermark.create({ cursor: Buffer.from(String(index)) });
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
