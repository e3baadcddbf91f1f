/**
 * The events of a loopback node. Those of the model of `move/enclave`, which emits none, follow from how a transaction
 * changed its objects: a change to the same value emits nothing, and the order within a transaction may be another.
 */
import type { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { parseStructTag } from '@mysten/sui/utils';
import { ENCLAVE_EVENTS, type EnclaveEventName } from 'sui-enclave/sui/events';
import { ConfigContent, EnclaveContent, RegistrarContent } from 'sui-enclave/sui/structs';
import type { Emitted } from './engine.ts';
import type { LedgerObject } from './ledger.ts';

type Objects = ReadonlyMap<string, LedgerObject>;
type TransactionData = typeof bcs.TransactionData.$inferType.V1;
/** The object whose change emits the event, the event's name, and its content. */
type Change = readonly [object: LedgerObject, name: EnclaveEventName, content: Uint8Array];

/** The most events in one answer, and the most that it looks at: as small as tests need. */
const PAGE = 3;
const SCAN = 8;

export class EventLog {
  readonly #events: GrpcTypes.Event[] = [];
  #checkpoint = 0n;

  /** Notes what a transaction that was executed emitted, and returns it. @param said what its engine says of that */
  record(
    before: Objects,
    after: Objects,
    { sender, kind }: TransactionData,
    digest: string,
    said: readonly Emitted[] | undefined,
  ): GrpcTypes.Event[] {
    this.#checkpoint += 1n;
    const { inputs = [], commands = [] } = kind.ProgrammableTransaction ?? {};
    const used = inputs.flatMap(({ Object: input }) => input?.ImmOrOwnedObject?.objectId ?? []);
    const by = used.find((id) => /::enclave::(Enclave|Registrar)Cap</.test(before.get(id)?.type ?? ''));
    const all = said ?? derived(before, after, by);
    const events = all.map(({ type: eventType, content: value, command = -1 }, eventIndex) => {
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

  /** `LedgerService.ListEvents`: one frame for each event, and the last one says why the list ends there. */
  list(request: Uint8Array): Uint8Array[] {
    const { filter, options } = GrpcTypes.ListEventsRequest.fromBinary(request);
    const descending = options?.ordering === GrpcTypes.Ordering.DESCENDING;
    const step = descending ? -1 : 1;
    const start = descending ? (numberOf(options?.before) ?? this.#events.length) : numberOf(options?.after);
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

function numberOf(cursor: Uint8Array | undefined): number | undefined {
  return cursor && Number(Buffer.from(cursor).toString());
}

/** By `package::module`, by `package::module::Name` of any type arguments, or by the whole type. */
function matches({ eventType = '' }: GrpcTypes.Event, filter: GrpcTypes.EventFilter | undefined): boolean {
  const wanted = filter?.terms[0]?.literals[0]?.predicate;
  if (wanted?.oneofKind !== 'eventType') return filter === undefined;
  const { eventType: type = '' } = wanted.eventType;
  return eventType === type || eventType.startsWith(`${type}::`) || eventType.startsWith(`${type}<`);
}

function derived(
  before: Objects,
  after: Objects,
  by?: string,
): (Pick<Emitted, 'type' | 'content'> & { command?: undefined })[] {
  return changes(before, after, by).map(([object, name, content]) => ({
    type: object.type.replace(/::enclave::\w+</, `::enclave::${name}<`),
    content,
  }));
}

function changes(before: Objects, after: Objects, by = ''): Change[] {
  const made = [...after].flatMap(([id, now]) => {
    const old = before.get(id);
    if (old?.version === now.version) return [];
    return old === undefined ? created(now, by) : changed(old, now);
  });
  const gone = [...before].flatMap(([id, old]) => (after.has(id) ? [] : deleted(old)));
  return [...made, ...gone];
}

function isA(struct: string, { type }: LedgerObject): boolean {
  return type.includes(`::enclave::${struct}<`);
}

function created(object: LedgerObject, by: string): Change[] {
  const { id, content } = object;
  if (isA('EnclaveCap', object)) {
    return [[object, 'EnclaveCapCreated', bytesOf('EnclaveCapCreated', { capabilityId: id })]];
  }
  if (isA('EnclaveConfig', object)) {
    const config = { ...ConfigContent.parse(content), configId: id };
    return [[object, 'EnclaveConfigCreated', bytesOf('EnclaveConfigCreated', config)]];
  }
  if (isA('RegistrarCap', object)) {
    const registrar = { ...RegistrarContent.parse(content), registrarId: id };
    return [[object, 'RegistrarCapCreated', bytesOf('RegistrarCapCreated', registrar)]];
  }
  if (!isA('Enclave', object)) return [];
  const enclave = { ...EnclaveContent.parse(content), enclaveId: id, registeredBy: by };
  return [[object, 'EnclaveRegistered', bytesOf('EnclaveRegistered', enclave)]];
}

function changed(old: LedgerObject, object: LedgerObject): Change[] {
  if (!isA('EnclaveConfig', object)) return [];
  const was = ConfigContent.parse(old.content);
  const config = ConfigContent.parse(object.content);
  const event = { ...config, configId: object.id, overlapUntilMs: config.overlap?.untilMs ?? null };
  const revoked = was.registrars.filter((id) => !config.registrars.includes(id));
  const updates: [boolean, EnclaveEventName][] = [
    [was.configVersion !== config.configVersion, 'PcrsUpdated'],
    [
      was.configVersion === config.configVersion && was.overlap !== null && config.overlap === null,
      'OverlapEnded',
    ],
    [was.name !== config.name, 'NameUpdated'],
    [was.maxKeyAgeMs !== config.maxKeyAgeMs, 'MaxKeyAgeUpdated'],
    [was.isRetired !== config.isRetired, 'ConfigRetired'],
    [was.packageVersion !== config.packageVersion, 'ConfigMigrated'],
  ];
  const names = updates.flatMap(([isChanged, name]) => (isChanged ? [name] : []));
  return [
    ...names.map((name): Change => [object, name, bytesOf(name, event)]),
    ...revoked.map((registrarId): Change => {
      const registrar = { configId: object.id, registrarId };
      return [object, 'RegistrarCapRevoked', bytesOf('RegistrarCapRevoked', registrar)];
    }),
  ];
}

function deleted(object: LedgerObject): Change[] {
  if (!isA('Enclave', object)) return [];
  const enclave = { ...EnclaveContent.parse(object.content), enclaveId: object.id };
  return [[object, 'EnclaveDestroyed', bytesOf('EnclaveDestroyed', enclave)]];
}

/** The event's fields of a value that may have more. */
function bytesOf(name: EnclaveEventName, value: object): Uint8Array {
  const type = ENCLAVE_EVENTS[name] as { serialize(value: object): { toBytes(): Uint8Array } };
  return type.serialize(value).toBytes();
}
