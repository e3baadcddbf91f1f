/** Reads the events of `move/enclave` from a Sui node. Browser-safe. */
import type { InferBcsType } from '@mysten/bcs';
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import { normalizeStructTag, parseStructTag } from '@mysten/sui/utils';
import { u64 } from '../wire/bcs.ts';
import { type AskOptions, askNode, badAnswer, MAX_PAGES, pageLimit } from './ask.ts';
import type { Contract } from './objects.ts';
import { readPackage } from './packages.ts';
import { Pcrs, parseExactly, SourceContent, timeMs } from './structs.ts';
import { checkAddress, checkStructType, invalidValue } from './values.ts';

const Registrar = { configId: bcs.Address, registrarId: bcs.Address };
const Enclave = {
  enclaveId: bcs.Address,
  configId: bcs.Address,
  configVersion: u64,
  publicKey: bcs.byteVector(),
};

/**
 * Every event that `move/enclave` emits, by the name of its struct, in BCS: the fields of the Move struct in
 * its order, named as in the objects that `readConfig` and `readEnclave` return. `move/weather` emits none.
 */
export const ENCLAVE_EVENTS = {
  /** A capability was created. */
  EnclaveCapCreated: bcs.struct('EnclaveCapCreated', { capabilityId: bcs.Address }),
  /** A config was created. */
  EnclaveConfigCreated: bcs.struct('EnclaveConfigCreated', {
    configId: bcs.Address,
    capabilityId: bcs.Address,
    name: bcs.string(),
    image: Pcrs,
    source: bcs.option(SourceContent),
    configVersion: u64,
  }),
  /** The config that was created just before is open: anyone may register enclaves under it, permanently. */
  OpenConfigCreated: bcs.struct('OpenConfigCreated', { configId: bcs.Address }),
  /**
   * A config has new registers: enclaves of older versions are stale from now on. If `overlapUntilMs` is not
   * null, enclaves of the version before become stale only at that time, in milliseconds since the Unix
   * epoch.
   */
  PcrsUpdated: bcs.struct('PcrsUpdated', {
    configId: bcs.Address,
    image: Pcrs,
    source: bcs.option(SourceContent),
    configVersion: u64,
    overlapUntilMs: bcs.option(timeMs),
  }),
  /**
   * An overlap was ended, perhaps after its time was over. All enclaves except those of this version are
   * stale.
   */
  OverlapEnded: bcs.struct('OverlapEnded', { configId: bcs.Address, configVersion: u64 }),
  /** A config has a new name. */
  NameUpdated: bcs.struct('NameUpdated', { configId: bcs.Address, name: bcs.string() }),
  /** A config has another maximum key age. */
  MaxKeyAgeUpdated: bcs.struct('MaxKeyAgeUpdated', { configId: bcs.Address, maxKeyAgeMs: bcs.option(u64) }),
  /** A config was retired: contracts no longer accept any of its enclaves. */
  ConfigRetired: bcs.struct('ConfigRetired', { configId: bcs.Address }),
  /**
   * The config was moved to this version of the package. Only this version verifies by the config and changes
   * it.
   */
  ConfigMigrated: bcs.struct('ConfigMigrated', { configId: bcs.Address, packageVersion: u64 }),
  /** A registrar was created, and may register enclaves from now on. */
  RegistrarCapCreated: bcs.struct('RegistrarCapCreated', Registrar),
  /** A registrar was revoked, and may no longer register enclaves. The enclaves that it registered remain. */
  RegistrarCapRevoked: bcs.struct('RegistrarCapRevoked', Registrar),
  /**
   * An enclave was registered for the application. `registeredBy` is the capability or registrar that was
   * used, or the config itself if it is open and neither was used.
   */
  EnclaveRegistered: bcs.struct('EnclaveRegistered', {
    ...Enclave,
    registeredAtMs: timeMs,
    registeredBy: bcs.Address,
  }),
  /** An enclave was destroyed. */
  EnclaveDestroyed: bcs.struct('EnclaveDestroyed', Enclave),
};

/** Name of an event of `move/enclave`. */
export type EnclaveEventName = keyof typeof ENCLAVE_EVENTS;

interface EventOf<Name extends EnclaveEventName> extends Contract {
  readonly name: Name;
  readonly data: InferBcsType<(typeof ENCLAVE_EVENTS)[Name]>;
  /** Address of the sender of the transaction. */
  readonly sender: string;
  readonly transactionDigest: string;
  /** Index of the event among the transaction's events. */
  readonly eventIndex: number;
  /** The checkpoint of the transaction, or null if the node doesn't report it. */
  readonly checkpoint: bigint | null;
}

/** An event: `name` identifies it, and determines the type of `data`. */
export type EnclaveEvent<Name extends EnclaveEventName = EnclaveEventName> = {
  [EventName in Name]: EventOf<EventName>;
}[Name];

/** Query for events of one package, of all its applications or of one. */
export interface EventQuery<Name extends EnclaveEventName = EnclaveEventName> extends AskOptions {
  /**
   * Id of the latest version of the package that contains `enclave::enclave`. The id of an earlier version
   * finds only those events that the earlier version defines, no matter which version emits them.
   */
  readonly enclavePackage: string;
  /** Type of the application whose events are read. Default: all applications of the package. */
  readonly application?: string;
  /**
   * Name of the events that are read. Default: all, which works only if one version of the package introduced
   * them all.
   */
  readonly name?: Name;
  /** Order of the events. Default: `ascending`, the oldest first. */
  readonly order?: 'ascending' | 'descending';
  /**
   * The `cursor` of an earlier page with the same query and order. Default: the first page in this order.
   */
  readonly cursor?: string | null;
  /** Maximum number of events on a page. Default: 50, which is also the usual maximum of nodes. */
  readonly limit?: number;
}

/** A page of events, and the position after it. */
export interface EventPage<Name extends EnclaveEventName = EnclaveEventName> {
  /** Events of the page, in the order of the query. */
  readonly events: EnclaveEvent<Name>[];
  /**
   * Position from which to continue, now or when there are new events. Null if there was no event yet.
   */
  readonly cursor: string | null;
  /**
   * Whether there may be more events. The page may be empty even then, since nodes search only a part of the
   * ledger at a time.
   */
  readonly hasNextPage: boolean;
}

/**
 * Reads one page of events, as the node reports them. Works with the gRPC and the GraphQL client of
 * `@mysten/sui`. A gRPC node that doesn't offer `LedgerService.ListEvents` refuses with the status
 * UNIMPLEMENTED: ask a GraphQL service instead. Nodes may have pruned old events.
 *
 * @example
 * let { cursor } = await load();
 * const page = await readEvents(client, { ...contract, name: 'EnclaveRegistered', cursor });
 * for (const { data } of page.events) console.log(data.enclaveId, data.registeredBy);
 * await save(page.cursor);
 *
 * @throws SuiError: SUI_VALUE also if this version of the package has no such event, or if the query has no
 *   `name` although several versions introduced events, which nodes list separately; the reason of an aborted
 *   signal
 */
export async function readEvents<Name extends EnclaveEventName = EnclaveEventName>(
  client: ClientWithCoreApi,
  query: EventQuery<Name>,
): Promise<EventPage<Name>> {
  const { cursor = null, name } = query;
  const checked = checkContract(query);
  const paging = checkPaging(query);
  const contract = { ...checked, enclavePackage: await readOrigin(client, checked.enclavePackage, query) };
  const request = { filter: { eventType: createFilter(contract, name) }, ...paging };
  const page = await askNode(query, (signal) => client.core.listEvents({ ...request, ...signal }));
  const next = page.endCursor ?? cursor;
  if (page.hasNextPage && (next === null || next === cursor))
    throw badAnswer('the list of events does not end');
  const events = page.events
    .map((entry) => parseEvent(entry, contract.enclavePackage))
    // A node selects by application only together with a name.
    .filter(({ application }) => contract.application === undefined || application === contract.application);
  if (name !== undefined && events.some((event) => event.name !== name)) {
    throw badAnswer(`the node answered with events other than ${name}`);
  }
  return { events: events as EnclaveEvent<Name>[], cursor: next, hasNextPage: page.hasNextPage };
}

/**
 * Yields every event up to now, and reads them page by page. To continue later, use `readEvents`, and keep
 * its cursor.
 *
 * @example
 * for await (const { name, data } of iterateEvents(client, contract)) console.log(name, data);
 *
 * @throws as `readEvents` does
 */
export async function* iterateEvents<Name extends EnclaveEventName = EnclaveEventName>(
  client: ClientWithCoreApi,
  query: EventQuery<Name>,
): AsyncGenerator<EnclaveEvent<Name>, void, undefined> {
  let cursor = query.cursor ?? null;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const page = await readEvents(client, { ...query, cursor });
    yield* page.events;
    if (!page.hasNextPage) return;
    cursor = page.cursor;
  }
  throw badAnswer('the list of events does not end');
}

interface CheckedContract {
  readonly enclavePackage: string;
  readonly application: string | undefined;
}

function checkContract({ enclavePackage, application, name }: EventQuery): CheckedContract {
  if (name !== undefined && !Object.hasOwn(ENCLAVE_EVENTS, name)) {
    throw invalidValue(`"name" must be one of ${Object.keys(ENCLAVE_EVENTS).join(', ')}`);
  }
  return {
    enclavePackage: checkAddress('the package of the enclave', enclavePackage),
    application: application === undefined ? undefined : checkStructType('the application', application),
  };
}

/** The type origins of packages, which never change, by the id of a version. */
const TYPE_ORIGINS = new WeakMap<ClientWithCoreApi, Map<string, ReadonlyMap<string, string>>>();

/**
 * Returns the id of the version that introduced the events of a query. The types of the events have this id.
 */
async function readOrigin(
  client: ClientWithCoreApi,
  packageId: string,
  { name, ...options }: EventQuery,
): Promise<string> {
  const cachedOrigins = TYPE_ORIGINS.get(client) ?? new Map<string, ReadonlyMap<string, string>>();
  TYPE_ORIGINS.set(client, cachedOrigins);
  const typeOrigins =
    cachedOrigins.get(packageId) ?? (await readPackage(client, packageId, options)).typeOrigins;
  cachedOrigins.set(packageId, typeOrigins);
  const names = name === undefined ? Object.keys(ENCLAVE_EVENTS) : [name];
  const origins = new Set(names.flatMap((event) => typeOrigins.get(`enclave::${event}`) ?? []));
  const [origin, secondOrigin] = origins;
  if (origin === undefined) {
    const event = name === undefined ? 'no events of enclave::enclave' : `no event enclave::${name}`;
    throw invalidValue(
      `the version ${packageId} of the package has ${event}: pass the id of its latest version`,
    );
  }
  if (secondOrigin !== undefined) {
    throw invalidValue(
      `the events of the package ${packageId} are of several versions (${[...origins].join(', ')}): read them by their names, one "name" for each query`,
    );
  }
  return origin;
}

function createFilter({ enclavePackage, application }: CheckedContract, name: string | undefined): string {
  const module = `${enclavePackage}::enclave`;
  if (name === undefined) return module;
  return application === undefined ? `${module}::${name}` : `${module}::${name}<${application}>`;
}

function checkPaging({ cursor = null, limit, order = 'ascending' }: EventQuery) {
  if (order !== 'ascending' && order !== 'descending') {
    throw invalidValue('"order" must be "ascending" or "descending"');
  }
  const from = order === 'ascending' ? { after: cursor } : { before: cursor };
  return { order, ...pageLimit(limit), ...(cursor !== null && from) };
}

function parseEvent(entry: SuiClientTypes.EventEntry, enclavePackage: string): EnclaveEvent {
  const { address, module, name, typeParams } = parseStructTag(entry.eventType);
  const [application] = typeParams;
  if (address !== enclavePackage || module !== 'enclave' || typeof application !== 'object') {
    throw badAnswer(`the node answered with an event other than the requested one: ${entry.eventType}`);
  }
  if (!Object.hasOwn(ENCLAVE_EVENTS, name)) {
    throw badAnswer(`this library doesn't know the event ${entry.eventType}: the package may be newer`);
  }
  const data = parseExactly(
    ENCLAVE_EVENTS[name as EnclaveEventName] as typeof ENCLAVE_EVENTS.NameUpdated,
    entry.bcs,
  );
  if (data === null) {
    throw badAnswer(
      `the content of event ${entry.eventIndex} of ${entry.transactionDigest} does not match its type in move/enclave`,
    );
  }
  return {
    enclavePackage,
    application: normalizeStructTag(application),
    name,
    data,
    sender: entry.sender,
    transactionDigest: entry.transactionDigest,
    eventIndex: entry.eventIndex,
    checkpoint: entry.checkpoint === null ? null : BigInt(entry.checkpoint),
  } as EnclaveEvent;
}
