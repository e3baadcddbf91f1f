/**
 * Reads the objects of `move/enclave` from a Sui node. Browser-safe. Works with every client of
 * `@mysten/sui`.
 */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { deriveDynamicFieldID, deriveObjectID, normalizeStructTag } from '@mysten/sui/utils';
import type { Image } from '../attestation/image.ts';
import { type U64Input, u64 } from '../wire/bcs.ts';
import { type AskOptions, askNode, badAnswer, MAX_PAGES, pageLimit } from './ask.ts';
import { parseContent, parseObjectType, type ReadObject, readObject, readObjects } from './read_object.ts';
import { ConfigContent, EnclaveContent, EnclaveKey, RegistrarContent, type Source } from './structs.ts';
import { checkAddress, checkBytes, checkStructType, encodeU64, invalidValue } from './values.ts';

/** The generic structs of the module `enclave`. */
type Struct = 'EnclaveConfig' | 'Enclave' | 'EnclaveCap' | 'RegistrarCap';

/** The contracts that an object belongs to, according to its type. */
export interface Contract {
  /**
   * Id of the package version that introduced the types of `enclave::enclave`, which keep this id through
   * upgrades. It is the first version, unless an upgrade added that module to the package.
   */
  readonly enclavePackage: string;
  /** The type `T` that the object is for, such as `0x…::weather::WEATHER`: see `readApplicationType`. */
  readonly application: string;
}

/** The config of an application: the image that contracts accept, at the latest version. */
export interface EnclaveConfig extends Contract {
  /** Object id of the config. */
  readonly id: string;
  /** Name of the config, for people. */
  readonly name: string;
  /** Registers of the image that contracts accept, at the latest version. */
  readonly image: Image;
  /** Source of the image, if the admin named one. It has not been checked. */
  readonly source: Source | null;
  /** The only capability that can change the config. */
  readonly capabilityId: string;
  /** The number of times that the registers changed. */
  readonly configVersion: bigint;
  /**
   * The overlap: contracts also accept enclaves of the previous version, which run `image`, until `untilMs`.
   * This time is in milliseconds since the Unix epoch, and may have passed. Null if no overlap was begun with
   * the current registers, or if it was ended.
   */
  readonly overlap: { readonly image: Image; readonly untilMs: bigint } | null;
  /** The maximum age of an accepted key, in milliseconds since its attestation; null: no maximum. */
  readonly maxKeyAgeMs: bigint | null;
  /** The ids of the registrars that may register enclaves. */
  readonly registrars: readonly string[];
  /**
   * Whether the config has ended: nothing can be registered under it, and contracts accept none of its
   * enclaves.
   */
  readonly isRetired: boolean;
  /**
   * The only version of `move/enclave` that verifies by the config and changes it: the value of its
   * constant PACKAGE_VERSION.
   */
  readonly packageVersion: bigint;
  /**
   * Whether anyone may register enclaves of the image, on any host, without a capability. Fixed at the
   * creation of the config.
   */
  readonly isOpen: boolean;
}

/** An enclave that is registered under a config. */
export interface Enclave extends Contract {
  /** Object id of the enclave. */
  readonly id: string;
  /** The enclave's ed25519 key, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Object id of the enclave's config. */
  readonly configId: string;
  /** The version of the config at registration: see `isStale`. */
  readonly configVersion: bigint;
  /**
   * The time of the attestation with which the enclave was registered, in milliseconds since the Unix epoch.
   */
  readonly registeredAtMs: bigint;
}

/** Type of the mark by which `sui::derived_object` reserves an address forever. */
const CLAIMED = normalizeStructTag('0x2::derived_object::Claimed');

/**
 * Reads a config by its object id.
 *
 * @throws SuiError, or its subclasses ObjectNotFoundError and WrongObjectTypeError; the reason of an
 *   aborted signal
 */
export async function readConfig(
  client: ClientWithCoreApi,
  configId: string,
  options: AskOptions = {},
): Promise<EnclaveConfig> {
  const object = await readObject(client, 'config', configId, options);
  return {
    ...parseContract(object, 'EnclaveConfig'),
    ...parseContent(ConfigContent, object),
    id: object.objectId,
  };
}

/** Reads an enclave by its object id. @throws as `readConfig` does */
export async function readEnclave(
  client: ClientWithCoreApi,
  enclaveId: string,
  options: AskOptions = {},
): Promise<Enclave> {
  return parseEnclave(await readObject(client, 'enclave', enclaveId, options));
}

/** A capability that registers enclaves of one config. */
export interface Registrar extends Contract {
  /** Object id of the RegistrarCap. */
  readonly id: string;
  /**
   * Object id of the config under which it registers enclaves, unless it was revoked: see `registrars` of the
   * config.
   */
  readonly configId: string;
}

/** Reads a registrar by its object id. @throws as `readConfig` does */
export async function readRegistrar(
  client: ClientWithCoreApi,
  registrarId: string,
  options: AskOptions = {},
): Promise<Registrar> {
  const object = await readObject(client, 'registrar', registrarId, options);
  return {
    ...parseContract(object, 'RegistrarCap'),
    ...parseContent(RegistrarContent, object),
    id: object.objectId,
  };
}

/**
 * Returns whether contracts also accept enclaves of the previous version of the config at a time, in
 * milliseconds since the Unix epoch.
 */
export function isOverlapping({ overlap }: EnclaveConfig, nowMs: number): boolean {
  return overlap !== null && BigInt(nowMs) < overlap.untilMs;
}

/**
 * Returns the images of enclaves that contracts accept at a time, in milliseconds since the Unix epoch. In an
 * overlap there are two, otherwise one.
 */
export function acceptedImages(config: EnclaveConfig, nowMs: number): [Image, ...Image[]] {
  const { image, overlap } = config;
  return overlap !== null && isOverlapping(config, nowMs) ? [image, overlap.image] : [image];
}

/**
 * Returns whether the enclave is stale at a time, in milliseconds since the Unix epoch: the registers changed
 * after it was registered, and no overlap includes its version.
 */
export function isStale(enclave: Enclave, config: EnclaveConfig, nowMs: number): boolean {
  const oldest = config.configVersion - (isOverlapping(config, nowMs) ? 1n : 0n);
  return enclave.configVersion < oldest;
}

/**
 * Returns whether the enclave's key is older than the config allows at a time, in milliseconds since the Unix
 * epoch.
 */
export function isKeyTooOld(enclave: Enclave, config: EnclaveConfig, nowMs: number): boolean {
  return config.maxKeyAgeMs !== null && BigInt(nowMs) - enclave.registeredAtMs > config.maxKeyAgeMs;
}

/**
 * Returns the id of the enclave with this key at a version of the config, whether the enclave exists or not.
 * Needs no node: the id is derived from the type `EnclaveKey`, which the same version of the package
 * introduced as the config's type.
 */
export function enclaveAddress(
  config: Pick<EnclaveConfig, 'id' | 'enclavePackage'>,
  configVersion: U64Input,
  publicKey: Uint8Array,
): string {
  const pk = checkBytes('the public key', publicKey, { min: 32, max: 32 });
  const version = u64.parse(encodeU64('the version of the config', configVersion));
  const key = EnclaveKey.serialize({ configVersion: version, publicKey: pk }).toBytes();
  const enclavePackage = checkAddress('the package of the enclave', config.enclavePackage);
  return deriveObjectID(
    checkAddress('the id of the config', config.id),
    `${enclavePackage}::enclave::EnclaveKey`,
    key,
  );
}

/** The state of a key under a config. */
export interface Registration {
  /** The id of its enclave, whether it exists or not. */
  readonly enclaveId: string;
  /** The version of the config to which `enclaveId` and `state` refer. */
  readonly configVersion: bigint;
  /** `free`: never registered. `destroyed`: was registered, and can't be registered again at this version. */
  readonly state: 'free' | 'registered' | 'destroyed';
}

/** Options of a search for a registration. */
export interface RegistrationOptions extends AskOptions {
  /**
   * Versions of the config at which to look. `accepted`: the versions that contracts accept, which are two in
   * an overlap. `latest`: only the latest version, at which keys can be registered now. Default: `accepted`.
   */
  readonly versions?: 'accepted' | 'latest';
  /**
   * The time that decides whether there is an overlap, in milliseconds since the Unix epoch. Default: now.
   */
  readonly nowMs?: number;
}

/**
 * Finds out whether a key is registered under a config. If it is not registered, the result describes the
 * latest version.
 *
 * @throws as `readConfig` does
 */
export async function findRegistration(
  client: ClientWithCoreApi,
  config: EnclaveConfig,
  publicKey: Uint8Array,
  options: RegistrationOptions = {},
): Promise<Registration> {
  const { versions = 'accepted', nowMs = Date.now() } = options;
  if (versions !== 'accepted' && versions !== 'latest') {
    throw invalidValue('"versions" must be "accepted" or "latest"');
  }
  const { configVersion } = config;
  const enclaveId = enclaveAddress(config, configVersion, publicKey);
  const claimId = deriveDynamicFieldID(config.id, CLAIMED, bcs.Address.serialize(enclaveId).toBytes());
  const previousIds =
    versions === 'accepted' && isOverlapping(config, nowMs)
      ? [enclaveAddress(config, configVersion - 1n, publicKey)]
      : [];
  const [enclave, claim, previousEnclave] = await readObjects(
    client,
    [enclaveId, claimId, ...previousIds],
    options,
  );
  const object = enclave ?? previousEnclave;
  if (!object) return { enclaveId, configVersion, state: claim ? 'destroyed' : 'free' };
  const registeredEnclave = parseEnclave(object);
  return {
    enclaveId: registeredEnclave.id,
    configVersion: registeredEnclave.configVersion,
    state: 'registered',
  };
}

/** Options of a list of enclaves. */
export interface ListOptions extends AskOptions {
  /**
   * `current`: only the enclaves of versions that contracts accept. In an overlap, these are two versions.
   * Default: `all`.
   */
  readonly versions?: 'all' | 'current';
  /** The time that decides which enclaves are stale, in milliseconds since the Unix epoch. Default: now. */
  readonly nowMs?: number;
  /**
   * Maximum number of registrations to look at. With a maximum, the result may have a `cursor`. Default: all.
   */
  readonly limit?: number;
  /** The `cursor` of the previous result, from which to continue. */
  readonly cursor?: string | null;
}

/** An enclave that exists. */
export interface ListedEnclave extends Enclave {
  /** Whether contracts no longer accept its version: see the function `isStale`. */
  readonly isStale: boolean;
}

/** A list of enclaves, and the position after it. */
export interface EnclaveList {
  /** Enclaves that are registered, as far as this page goes. */
  readonly enclaves: ListedEnclave[];
  /** The ids of enclaves that were destroyed, of every version, since an id does not contain its version. */
  readonly destroyed: string[];
  /** Position from which to continue; null at the end of the list. */
  readonly cursor: string | null;
}

/**
 * Lists every enclave that was ever registered under a config: the existing ones, and the ids of those that
 * were destroyed. Needs no indexer, since the config itself holds a mark for each. An enclave that is
 * registered during the call may be missing.
 *
 * @example
 * const { enclaves } = await listEnclaves(client, config, { versions: 'current' });
 *
 * @throws as `readConfig` does
 */
export async function listEnclaves(
  client: ClientWithCoreApi,
  config: EnclaveConfig,
  options: ListOptions = {},
): Promise<EnclaveList> {
  const { versions = 'all', nowMs = Date.now(), limit } = options;
  if (versions !== 'all' && versions !== 'current') {
    throw invalidValue('"versions" must be "all" or "current"');
  }
  const list: EnclaveList = { enclaves: [], destroyed: [], cursor: null };
  let cursor = options.cursor ?? null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { ids, next } = await readRegistrations(client, config.id, cursor, options);
    for (const [index, object] of (await readObjects(client, ids, options)).entries()) {
      if (!object) list.destroyed.push(ids[index] ?? '');
      else list.enclaves.push(toListedEnclave(object, config, nowMs));
    }
    if (next === null || limit !== undefined)
      return { ...list, ...filterVersions(list, versions), cursor: next };
    cursor = next;
  }
  throw badAnswer('the list of enclaves does not end');
}

function filterVersions({ enclaves }: EnclaveList, versions: 'all' | 'current') {
  return { enclaves: versions === 'all' ? enclaves : enclaves.filter(({ isStale: stale }) => !stale) };
}

function toListedEnclave(object: ReadObject, config: EnclaveConfig, nowMs: number): ListedEnclave {
  const enclave = parseEnclave(object);
  if (enclave.configId !== config.id) {
    throw badAnswer(
      `the enclave ${enclave.id} is listed under ${config.id}, but belongs to ${enclave.configId}`,
    );
  }
  return { ...enclave, isStale: isStale(enclave, config, nowMs) };
}

/** Reads one page of the ids of enclaves that were ever registered. */
async function readRegistrations(
  client: ClientWithCoreApi,
  parentId: string,
  cursor: string | null,
  options: ListOptions,
): Promise<{ ids: string[]; next: string | null }> {
  const limit = pageLimit(options.limit);
  const page = await askNode(options, (signal) =>
    client.core.listDynamicFields({ parentId, ...limit, ...(cursor !== null && { cursor }), ...signal }),
  );
  if (page.hasNextPage && (page.cursor === null || page.cursor === cursor)) {
    throw badAnswer('the list of enclaves does not end');
  }
  const marks = page.dynamicFields.filter(({ name }) => normalizeStructTag(name.type) === CLAIMED);
  return {
    ids: marks.map(({ name }) => bcs.Address.parse(name.bcs)),
    next: page.hasNextPage ? page.cursor : null,
  };
}

/**
 * Returns the ids of the capabilities for an application that an address owns. @throws as `readConfig` does
 */
export async function listCapabilities(
  client: ClientWithCoreApi,
  owner: string,
  { enclavePackage, application }: Contract,
  options: AskOptions = {},
): Promise<string[]> {
  const type = `${checkAddress('the package of the enclave', enclavePackage)}::enclave::EnclaveCap<${checkStructType('the application', application)}>`;
  const address = checkAddress('the owner', owner);
  const { objects, hasNextPage } = await askNode(options, (signal) =>
    client.core.listOwnedObjects({ owner: address, type, ...signal }),
  );
  if (hasNextPage) throw badAnswer(`${owner} owns more capabilities than fit on one page: name one`);
  return objects.map(({ objectId }) => checkAddress('the id of the capability', objectId));
}

function parseEnclave(object: ReadObject): Enclave {
  return {
    ...parseContract(object, 'Enclave'),
    ...parseContent(EnclaveContent, object),
    id: object.objectId,
  };
}

function parseContract(object: ReadObject, struct: Struct): Contract {
  const { packageId, application } = parseObjectType(object, 'enclave', struct);
  return { enclavePackage: packageId, application };
}
