/** Reads the objects of `move/enclave` from a Sui node. Browser-safe. Works with every client of `@mysten/sui`. */
import { type BcsType, bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import {
  deriveDynamicFieldID,
  deriveObjectID,
  normalizeStructTag,
  parseStructTag,
  toHex,
} from '@mysten/sui/utils';
import type { Image } from '../attestation/image.ts';
import { type U64Input, u64 } from '../wire/bcs.ts';
import { ObjectNotFoundError, SuiError, WrongObjectTypeError } from './errors.ts';
import { suiErrorOf } from './failures.ts';
import { addressOf, bytesOf, structTypeOf, u64Of } from './values.ts';

/** The generic structs of the module `enclave`. */
type Struct = 'EnclaveConfig' | 'Enclave' | 'EnclaveCap' | 'RegistrarCap';

/** The contracts that an object belongs to, according to its type. */
export interface Contract {
  /** The package of `enclave::enclave` as first published: types keep this id through upgrades. */
  readonly enclavePackage: string;
  /** The type `T` that the object is for, such as `0x…::weather::WEATHER`. */
  readonly application: string;
}

/** Which image may run, at the latest version. */
export interface EnclaveConfig extends Contract {
  readonly id: string;
  /** Human-readable. */
  readonly name: string;
  readonly image: Image;
  /** The only capability that can change the config. */
  readonly capabilityId: string;
  /** The number of times that the registers changed. */
  readonly configVersion: bigint;
  /** The greatest age at which a key may speak, in milliseconds since its attestation; null: any. */
  readonly maxKeyAgeMs: bigint | null;
  /** The ids of the registrars that may register enclaves. */
  readonly registrars: readonly string[];
  /** Whether it has ended: nothing can be registered under it, and none of its enclaves speaks for the application. */
  readonly isRetired: boolean;
}

/** One registered enclave. */
export interface Enclave extends Contract {
  readonly id: string;
  /** Its ed25519 key, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly configId: string;
  /** The version of the config at registration: the enclave is stale once the config has a higher one. */
  readonly configVersion: bigint;
  /** The time of the attestation that it was registered with, in milliseconds since the Unix epoch. */
  readonly registeredAtMs: bigint;
}

const ConfigContent = bcs.struct('EnclaveConfig', {
  id: bcs.Address,
  name: bcs.string(),
  pcrs: bcs.struct('Pcrs', { pcr0: bcs.byteVector(), pcr1: bcs.byteVector(), pcr2: bcs.byteVector() }),
  capability_id: bcs.Address,
  config_version: u64,
  max_key_age_ms: bcs.option(u64),
  registrars: bcs.vector(bcs.Address),
  is_retired: bcs.bool(),
});

const EnclaveContent = bcs.struct('Enclave', {
  id: bcs.Address,
  pk: bcs.byteVector(),
  config_id: bcs.Address,
  config_version: u64,
  registered_at_ms: u64,
});

const RegistrarContent = bcs.struct('RegistrarCap', { id: bcs.Address, config_id: bcs.Address });

const EnclaveKey = bcs.struct('EnclaveKey', { config_version: u64, pk: bcs.byteVector() });

/** The mark by which `sui::derived_object` reserves an address forever. */
const CLAIMED = normalizeStructTag('0x2::derived_object::Claimed');

type ReadObject = SuiClientTypes.Object<{ content: true }>;

/**
 * Reads a config.
 *
 * @throws SuiError, of which ObjectNotFoundError and WrongObjectTypeError are subclasses
 */
export async function readConfig(client: ClientWithCoreApi, configId: string): Promise<EnclaveConfig> {
  const id = addressOf('the id of the config', configId);
  const [object] = await readObjects(client, [id]);
  if (!object) throw new ObjectNotFoundError(id);
  const contract = contractOf(object, 'EnclaveConfig');
  const { name, pcrs, registrars, ...content } = parse(ConfigContent, object);
  return {
    ...contract,
    id,
    name,
    image: { pcr0: toHex(pcrs.pcr0), pcr1: toHex(pcrs.pcr1), pcr2: toHex(pcrs.pcr2) },
    capabilityId: content.capability_id,
    configVersion: content.config_version,
    maxKeyAgeMs: content.max_key_age_ms,
    registrars,
    isRetired: content.is_retired,
  };
}

/** Reads an enclave. @throws SuiError, as `readConfig` does */
export async function readEnclave(client: ClientWithCoreApi, enclaveId: string): Promise<Enclave> {
  const id = addressOf('the id of the enclave', enclaveId);
  const [object] = await readObjects(client, [id]);
  if (!object) throw new ObjectNotFoundError(id);
  return enclaveOf(object);
}

/** A capability that registers enclaves of one config. */
export interface Registrar extends Contract {
  readonly id: string;
  /** The config that it registers under, unless revoked: see `registrars` of the config. */
  readonly configId: string;
}

/** Reads a registrar. @throws SuiError, as `readConfig` does */
export async function readRegistrar(client: ClientWithCoreApi, registrarId: string): Promise<Registrar> {
  const id = addressOf('the id of the registrar', registrarId);
  const [object] = await readObjects(client, [id]);
  if (!object) throw new ObjectNotFoundError(id);
  const contract = contractOf(object, 'RegistrarCap');
  return { ...contract, id, configId: parse(RegistrarContent, object).config_id };
}

/** Whether the registers changed after the enclave was registered: then it may no longer speak for the application. */
export function isStale(enclave: Enclave, config: EnclaveConfig): boolean {
  return enclave.configVersion < config.configVersion;
}

/** Whether the config allows no key of this age at a time, in milliseconds since the Unix epoch. */
export function isKeyTooOld(enclave: Enclave, config: EnclaveConfig, nowMs: number): boolean {
  return config.maxKeyAgeMs !== null && BigInt(nowMs) - enclave.registeredAtMs > config.maxKeyAgeMs;
}

/** The id of the enclave with this key at a version of the config, whether it exists or not. Needs no node. */
export function enclaveAddress(
  config: Pick<EnclaveConfig, 'id' | 'enclavePackage'>,
  configVersion: U64Input,
  publicKey: Uint8Array,
): string {
  const pk = bytesOf('the public key', publicKey, { min: 32, max: 32 });
  const version = u64.parse(u64Of('the version of the config', configVersion));
  const key = EnclaveKey.serialize({ config_version: version, pk }).toBytes();
  const enclavePackage = addressOf('the package of the enclave', config.enclavePackage);
  return deriveObjectID(
    addressOf('the id of the config', config.id),
    `${enclavePackage}::enclave::EnclaveKey`,
    key,
  );
}

/** The state of a key at the latest version of a config. */
export interface Registration {
  /** The id of its enclave, whether it exists or not. */
  readonly enclaveId: string;
  /** `free`: never registered. `destroyed`: was registered, and can't be again at this version. */
  readonly state: 'free' | 'registered' | 'destroyed';
}

/** Whether a key is registered at the latest version of a config. @throws SuiError */
export async function findRegistration(
  client: ClientWithCoreApi,
  config: EnclaveConfig,
  publicKey: Uint8Array,
): Promise<Registration> {
  const enclaveId = enclaveAddress(config, config.configVersion, publicKey);
  const claimId = deriveDynamicFieldID(config.id, CLAIMED, bcs.Address.serialize(enclaveId).toBytes());
  const [enclave, claim] = await readObjects(client, [enclaveId, claimId]);
  if (!enclave) return { enclaveId, state: claim ? 'destroyed' : 'free' };
  enclaveOf(enclave);
  return { enclaveId, state: 'registered' };
}

/**
 * Every enclave that was ever registered under a config: the existing ones, and the ids of those that were destroyed.
 * Needs no indexer, since the config itself holds a mark for each.
 *
 * @throws SuiError
 */
export async function listEnclaves(
  client: ClientWithCoreApi,
  config: EnclaveConfig,
): Promise<{ enclaves: Enclave[]; destroyed: string[] }> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: SuiClientTypes.ListDynamicFieldsResponse = await answerOf(
      client.core.listDynamicFields({ parentId: config.id, ...(cursor !== null && { cursor }) }),
    );
    for (const { name } of page.dynamicFields) {
      if (normalizeStructTag(name.type) === CLAIMED) ids.push(bcs.Address.parse(name.bcs));
    }
    if (page.hasNextPage && (page.cursor === null || page.cursor === cursor)) {
      throw badAnswer('the list of enclaves does not end');
    }
    cursor = page.hasNextPage ? page.cursor : null;
  } while (cursor !== null);
  const objects = await readObjects(client, ids);
  return {
    enclaves: objects.flatMap((object) => (object ? [enclaveOf(object)] : [])),
    destroyed: ids.filter((_, index) => !objects[index]),
  };
}

/** The ids of the capabilities for an application that an address owns. @throws SuiError */
export async function listCapabilities(
  client: ClientWithCoreApi,
  owner: string,
  { enclavePackage, application }: Contract,
): Promise<string[]> {
  const type = `${addressOf('the package of the enclave', enclavePackage)}::enclave::EnclaveCap<${structTypeOf('the application', application)}>`;
  const { objects, hasNextPage } = await answerOf(
    client.core.listOwnedObjects({ owner: addressOf('the owner', owner), type }),
  );
  if (hasNextPage) throw badAnswer(`${owner} owns more capabilities than fit on one page: name one`);
  return objects.map(({ objectId }) => addressOf('the id of the capability', objectId));
}

async function answerOf<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw suiErrorOf(error);
  }
}

/** In the order of the ids; undefined for an object that doesn't exist. */
async function readObjects(client: ClientWithCoreApi, ids: string[]): Promise<(ReadObject | undefined)[]> {
  if (ids.length === 0) return [];
  const { objects } = await answerOf(client.core.getObjects({ objectIds: ids, include: { content: true } }));
  return ids.map((id, index) => {
    const object = objects[index];
    if (object instanceof Error) {
      const error = suiErrorOf(object);
      if (error instanceof ObjectNotFoundError) return undefined;
      throw error;
    }
    if (object?.objectId !== id) throw badAnswer(`the node answered with another object than ${id}`);
    return object;
  });
}

function enclaveOf(object: ReadObject): Enclave {
  const contract = contractOf(object, 'Enclave');
  const content = parse(EnclaveContent, object);
  return {
    ...contract,
    id: object.objectId,
    publicKey: content.pk,
    configId: content.config_id,
    configVersion: content.config_version,
    registeredAtMs: content.registered_at_ms,
  };
}

function contractOf({ objectId, type }: ReadObject, struct: Struct): Contract {
  const expected = `an enclave::${struct}<…>`;
  // A package has the type "package", which is not a struct.
  if (!type.includes('::'))
    throw new WrongObjectTypeError(objectId, expected, `a ${type || 'thing without a type'}`);
  const { address, module, name, typeParams } = parseStructTag(type);
  const [application] = typeParams;
  if (module !== 'enclave' || name !== struct || typeParams.length !== 1 || typeof application !== 'object') {
    throw new WrongObjectTypeError(objectId, expected, type);
  }
  return { enclavePackage: address, application: normalizeStructTag(application) };
}

function parse<Value, Input>(content: BcsType<Value, Input>, object: ReadObject): Value {
  try {
    const value = content.parse(object.content);
    // The parser ignores trailing bytes: they would mean another struct of the same name.
    const size = content.serialize(value as unknown as Input).toBytes().length;
    if (size === object.content.length) return value;
  } catch {
    // One message for every fault.
  }
  throw badAnswer(`the content of ${object.objectId} does not match its type in move/enclave`);
}

function badAnswer(message: string): SuiError {
  return new SuiError('SUI_NODE_ANSWER', message);
}
