/**
 * Reads a config and its enclaves from a Sui node. This module is loaded on demand, because it loads the Sui
 * client.
 */
import type { SuiClientTypes } from '@mysten/sui/client';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Image } from 'sui-enclave/attestation';
import {
  acceptedImages,
  ENCLAVE_EVENTS,
  type EnclaveConfig,
  type EnclaveEvent,
  type EnclaveEventName,
  type EnclaveList,
  type EventPage,
  type EventQuery,
  listEnclaves,
  NodeRefusedError,
  readConfig,
  readEvents,
  readPackage,
  toSuiError,
} from 'sui-enclave/sui';

/** A capability of a config, with its owner. */
export interface Holder {
  readonly role: 'capability' | 'registrar';
  readonly id: string;
  /** Address of the owner, or a description of another kind of owner. */
  readonly owner: { readonly address: string } | { readonly words: string };
}

export interface ChainState {
  readonly node: URL;
  readonly config: EnclaveConfig;
  readonly list: EnclaveList;
  readonly holders: readonly Holder[];
  /** Events of this config, the latest first; undefined if the node lists no events. */
  readonly events: readonly EnclaveEvent[] | undefined;
  /** Time of the read, in milliseconds since 1970. */
  readonly readAtMs: number;
}

/** Maximum number of events to find. */
const MAX_EVENTS = 100;
/**
 * Maximum number of pages to request in one query. A node searches only a part of the ledger for each page,
 * so many pages may have no event of this config.
 */
const MAX_PAGES = 40;
/** Maximum number of versions of a package that a node returns on one page. */
const MAX_VERSIONS = 1000;
const EVENT_NAMES = Object.keys(ENCLAVE_EVENTS) as EnclaveEventName[];

export function createNodeClient(url: URL): SuiGrpcClient {
  return new SuiGrpcClient({
    // The network determines only names of packages, and this page uses none.
    network: 'custom',
    baseUrl: url.href.replace(/\/$/, ''),
    fetchInit: { credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer' },
  });
}

/** Returns the images that contracts accept now. @throws SuiError; the signal's reason */
export async function readImages(
  node: URL,
  configId: string,
  signal: AbortSignal,
): Promise<readonly Image[]> {
  const config = await readConfig(createNodeClient(node), configId, { signal });
  return acceptedImages(config, Date.now());
}

/** Reads everything that the view shows about a config. @throws SuiError; the signal's reason */
export async function readChain(
  node: URL,
  configId: string,
  { signal, step }: { readonly signal: AbortSignal; readonly step: (words: string) => void },
): Promise<ChainState> {
  const client = createNodeClient(node);
  step(`Reading the config from ${node.host}`);
  const config = await readConfig(client, configId, { signal });
  step('Reading the holders of its capabilities');
  const holders = await readHolders(client, config, signal);
  step('Reading its enclaves');
  const list = await listEnclaves(client, config, { signal });
  step('Reading its events');
  const events = await readHistory(client, config, signal);
  return { node, config, list, holders, events, readAtMs: Date.now() };
}

async function readHolders(
  client: SuiGrpcClient,
  { capabilityId, registrars }: EnclaveConfig,
  signal: AbortSignal,
): Promise<Holder[]> {
  const ids = [capabilityId, ...registrars];
  const { objects } = await client.core.getObjects({ objectIds: ids, signal });
  return ids.map((id, index) => {
    const object = objects[index];
    const exists = object !== undefined && !(object instanceof Error);
    return {
      role: index === 0 ? 'capability' : 'registrar',
      id,
      owner: exists
        ? toOwner(object.owner)
        : { words: 'nobody: it was deleted, or is inside another object' },
    };
  });
}

/** Returns an owner's address, or a description of another kind of owner. */
export function formatOwner(owner: SuiClientTypes.ObjectOwner): string {
  const formatted = toOwner(owner);
  return 'address' in formatted ? formatted.address : formatted.words;
}

function toOwner(owner: SuiClientTypes.ObjectOwner): Holder['owner'] {
  switch (owner.$kind) {
    case 'AddressOwner':
      return { address: owner.AddressOwner };
    case 'ObjectOwner':
      return { address: owner.ObjectOwner };
    case 'ConsensusAddressOwner':
      return { address: owner.ConsensusAddressOwner.owner };
    case 'Shared':
      return { words: 'everyone: it is shared' };
    case 'Immutable':
      return { words: 'everyone: it is immutable' };
    default:
      return { words: 'unknown' };
  }
}

/**
 * Reads the events of this config, the latest first. Returns undefined if the node lists no events.
 *
 * @throws SuiError; the signal's reason
 */
export async function readHistory(
  client: SuiGrpcClient,
  config: Pick<EnclaveConfig, 'id' | 'enclavePackage' | 'application'>,
  signal: AbortSignal,
): Promise<EnclaveEvent[] | undefined> {
  try {
    const laterQueries = await readLaterQueries(client, config.enclavePackage, signal);
    const queries = [{ enclavePackage: config.enclavePackage }, ...laterQueries];
    const lists = await Promise.all(queries.map((query) => readLatest(client, config, { ...query, signal })));
    // Nodes list the events of each version separately.
    const events = lists.length === 1 ? lists.flat() : lists.flat().sort(compareLatest);
    return events.slice(0, MAX_EVENTS);
  } catch (error) {
    if (error instanceof NodeRefusedError && error.status === 'UNIMPLEMENTED') return undefined;
    throw error;
  }
}

/** Returns a query for each event that a later version of the package introduced. */
async function readLaterQueries(client: SuiGrpcClient, enclavePackage: string, signal: AbortSignal) {
  const { response } = await client.movePackageService
    .listPackageVersions({ packageId: enclavePackage, pageSize: MAX_VERSIONS }, { abort: signal })
    .then(undefined, (error: unknown) => {
      signal.throwIfAborted();
      throw toSuiError(error);
    });
  const [newest] = response.versions.toSorted((a, b) => Number((b.version ?? 0n) - (a.version ?? 0n)));
  const { packageId: latest = enclavePackage } = newest ?? {};
  if (latest === enclavePackage) return [];
  const { typeOrigins } = await readPackage(client, latest, { signal });
  return EVENT_NAMES.flatMap((name) => {
    const origin = typeOrigins.get(`enclave::${name}`);
    return origin === undefined || origin === enclavePackage ? [] : { enclavePackage: origin, name };
  });
}

/** Returns the latest events of this config from one query, the latest first. */
async function readLatest(
  client: SuiGrpcClient,
  { id, application }: Pick<EnclaveConfig, 'id' | 'application'>,
  query: Pick<EventQuery, 'enclavePackage' | 'name' | 'signal'>,
): Promise<EnclaveEvent[]> {
  const events: EnclaveEvent[] = [];
  let cursor: string | null = null;
  for (let count = 0; count < MAX_PAGES && events.length < MAX_EVENTS; count += 1) {
    const page: EventPage = await readEvents(client, { ...query, application, order: 'descending', cursor });
    events.push(...page.events.filter(({ data }) => 'configId' in data && data.configId === id));
    if (!page.hasNextPage) break;
    cursor = page.cursor;
  }
  return events;
}

function compareLatest(first: EnclaveEvent, second: EnclaveEvent): number {
  const checkpointsBetween = (second.checkpoint ?? 0n) - (first.checkpoint ?? 0n);
  return checkpointsBetween === 0n ? second.eventIndex - first.eventIndex : Number(checkpointsBetween);
}
