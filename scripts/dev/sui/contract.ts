/**
 * A model of the functions of `move/enclave` and `move/weather`, as their callers see them, for the loopback node, which
 * doesn't run Move. The Move tests show what the contracts themselves do.
 */
import { createPublicKey, verify } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import { deriveObjectID, normalizeStructTag } from '@mysten/sui/utils';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { decodeAttestation, predictRegistration } from '../../../src/attestation/index.ts';
import { ABORT_CODES } from '../../../src/sui/aborts.ts';
import type { Changes, LedgerObject, Owner } from './ledger.ts';

/** A Move function aborts: with the name of an `#[error]` constant, or with a number. */
export class MoveAbort extends Error {
  readonly location: { package: string; module: string; functionName: string };
  readonly constant: string | number;

  /** The code of the `#[error]` constant. */
  get code(): number | undefined {
    return ABORT_CODES[`${this.location.module}::${this.constant}`];
  }

  constructor(location: MoveAbort['location'], constant: string | number) {
    super(`${location.module}::${constant}`);
    this.location = location;
    this.constant = constant;
  }
}

export interface Call {
  readonly package: string;
  readonly module: string;
  readonly function: string;
  readonly typeArguments: readonly string[];
  /** Bytes of a pure value, an object, or what an earlier call returned. */
  readonly args: readonly unknown[];
}

export interface ExecutionContext {
  readonly changes: Changes;
  readonly sender: string;
  readonly nowMs: number;
  /** DER of the root that the model's `nitro_attestation` pins. */
  readonly root: Uint8Array;
  /** The id under which a package was first published: types are named by it. */
  original(packageId: string): string;
}

export const Config = bcs.struct('EnclaveConfig', {
  id: bcs.Address,
  name: bcs.string(),
  pcrs: bcs.tuple([bcs.byteVector(), bcs.byteVector(), bcs.byteVector()]),
  capability_id: bcs.Address,
  config_version: bcs.u64(),
  max_key_age_ms: bcs.option(bcs.u64()),
  registrars: bcs.vector(bcs.Address),
  is_retired: bcs.bool(),
});
export const Enclave = bcs.struct('Enclave', {
  id: bcs.Address,
  pk: bcs.byteVector(),
  config_id: bcs.Address,
  config_version: bcs.u64(),
  registered_at_ms: bcs.u64(),
});
export const Registrar = bcs.struct('RegistrarCap', { id: bcs.Address, config_id: bcs.Address });
const Key = bcs.struct('EnclaveKey', { config_version: bcs.u64(), pk: bcs.byteVector() });
const UpgradeCap = bcs.struct('UpgradeCap', {
  id: bcs.Address,
  package: bcs.Address,
  version: bcs.u64(),
  policy: bcs.u8(),
});
export const PUBLISHER = normalizeStructTag('0x2::package::Publisher');
export const Publisher = bcs.struct('Publisher', {
  id: bcs.Address,
  package: bcs.string(),
  module_name: bcs.string(),
});
const Nft = bcs.struct('WeatherNFT', {
  id: bcs.Address,
  location: bcs.string(),
  temperature: bcs.u64(),
  timestamp_ms: bcs.u64(),
});

type ConfigValue = typeof Config.$inferType;
type EnclaveValue = typeof Enclave.$inferType;

/** A verified attestation document. */
class Document {
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  readonly publicKey: Uint8Array;
  readonly timestampMs: number;

  constructor(pcrs: ReadonlyMap<number, Uint8Array>, publicKey: Uint8Array, timestampMs: number) {
    this.pcrs = pcrs;
    this.publicKey = publicKey;
    this.timestampMs = timestampMs;
  }
}

/** A value without abilities: a transaction that leaves one is invalid. */
export abstract class HotPotato {}

class Rotation extends HotPotato {
  readonly configId: string;

  constructor(configId: string) {
    super();
    this.configId = configId;
  }
}

/** An authorized upgrade. */
export class UpgradeTicket extends HotPotato {
  readonly capId: string;
  readonly packageId: string;
  readonly digest: Uint8Array;

  constructor(capId: string, packageId: string, digest: Uint8Array) {
    super();
    this.capId = capId;
    this.packageId = packageId;
    this.digest = digest;
  }
}

/** An upgrade that is done, and not committed yet. */
export class UpgradeReceipt extends HotPotato {
  readonly capId: string;
  readonly packageId: string;

  constructor(capId: string, packageId: string) {
    super();
    this.capId = capId;
    this.packageId = packageId;
  }
}

const MAX_AGE_MS = 90 * 60_000;
const MAX_AHEAD_MS = 60_000;

/** One call, with what the functions of the contract share. */
class Frame {
  readonly context: ExecutionContext;
  readonly call: Call;

  constructor(context: ExecutionContext, call: Call) {
    this.context = context;
    this.call = call;
  }

  get changes(): Changes {
    return this.context.changes;
  }

  abort(constant: string | number, module = this.call.module, functionName = this.call.function): MoveAbort {
    return new MoveAbort({ package: this.call.package, module, functionName }, constant);
  }

  pure(index: number): Uint8Array {
    return this.call.args[index] as Uint8Array;
  }

  object(index: number, struct: string): LedgerObject {
    return objectOf(this.call.args[index], struct);
  }

  type(struct: string): string {
    const { package: id, typeArguments } = this.call;
    return `${this.context.original(id)}::enclave::${struct}<${typeArguments[0]}>`;
  }

  config(index: number): ConfigValue {
    return Config.parse(this.object(index, 'EnclaveConfig').content);
  }

  /** `pcrs::new`, of the arguments from this one on. */
  pcrs(index: number): [Uint8Array, Uint8Array, Uint8Array] {
    const pcrs = [0, 1, 2].map((offset) => bcs.byteVector().parse(this.pure(index + offset)));
    if (pcrs.some((pcr) => pcr.length === 0)) throw this.abort('EPcrMissing', 'pcrs', 'new');
    if (pcrs.some((pcr) => pcr.length !== 48)) throw this.abort('EPcrLength', 'pcrs', 'new');
    if (pcrs[0]?.every((byte) => byte === 0)) throw this.abort('EDebugPcrs', 'pcrs', 'new');
    return pcrs as [Uint8Array, Uint8Array, Uint8Array];
  }

  assertCap(config: ConfigValue, index: number): LedgerObject {
    const cap = this.object(index, 'EnclaveCap');
    if (config.capability_id !== cap.id) throw this.abort('EInvalidCap', 'enclave', 'assert_cap');
    return cap;
  }

  /** The config of the first arguments, which its capability may change. */
  administered(index = 0): ConfigValue {
    const config = this.config(index);
    this.assertCap(config, index + 1);
    if (config.is_retired) throw this.abort('ERetired', 'enclave', 'assert_admin');
    return config;
  }

  write(config: ConfigValue): void {
    const at = this.changes.get(config.id) as LedgerObject;
    this.changes.write({ ...at, content: Config.serialize(config).toBytes() });
  }

  updatePcrs(): string {
    const config = this.administered();
    const config_version = (BigInt(config.config_version) + 1n).toString();
    this.write({ ...config, pcrs: this.pcrs(2), config_version });
    return config.id;
  }

  newConfig(): LedgerObject {
    const cap = this.object(0, 'EnclaveCap');
    const name = bcs.string().parse(this.pure(1));
    const pcrs = this.pcrs(2);
    const content = (id: string) =>
      Config.serialize({
        id,
        name,
        pcrs,
        capability_id: cap.id,
        config_version: 0,
        max_key_age_ms: null,
        registrars: [],
        is_retired: false,
      }).toBytes();
    return this.created(this.type('EnclaveConfig'), content, this.changes.shared());
  }

  register(config: ConfigValue, { pcrs, publicKey: pk, timestampMs }: Document): LedgerObject {
    const abort = (constant: string) => this.abort(constant, 'enclave', 'register');
    if (config.is_retired) throw abort('ERetired');
    const matches = config.pcrs.every((pcr, index) =>
      Buffer.from(pcr).equals(pcrs.get(index) ?? Buffer.alloc(0)),
    );
    if (!matches) throw abort('EInvalidPCRs');
    if (pk.length !== 32) throw abort('EInvalidPublicKey');
    const { id: config_id, config_version } = config;
    const key = Key.serialize({ config_version, pk }).toBytes();
    const keyType = `${this.context.original(this.call.package)}::enclave::EnclaveKey`;
    const address = deriveObjectID(config_id, keyType, key);
    if (!this.changes.claim(config_id, address)) throw abort('EAlreadyRegistered');
    const content = (id: string) =>
      Enclave.serialize({ id, pk, config_id, config_version, registered_at_ms: timestampMs }).toBytes();
    return this.created(this.type('Enclave'), content, this.changes.shared(), address);
  }

  removeRegistrar(config: ConfigValue, registrarId: string): void {
    this.write({ ...config, registrars: config.registrars.filter((id) => id !== registrarId) });
  }

  created(type: string, content: (id: string) => Uint8Array, owner: Owner, id?: string): LedgerObject {
    return this.changes.get(this.changes.create(type, owner, content, id)) as LedgerObject;
  }

  /** An object that the transaction transfers: until then its owner does not matter. */
  returned(type: string, content: (id: string) => Uint8Array): LedgerObject[] {
    return [this.created(type, content, { kind: 'address', address: this.context.sender })];
  }
}

type MoveFunction = (frame: Frame) => readonly unknown[] | Promise<readonly unknown[]>;

const nothing: readonly unknown[] = [];

/** A new object is created as a shared one: what remains of `share_…` is the check of its type. */
const FUNCTIONS: Readonly<Record<string, MoveFunction>> = {
  'nitro_attestation::load_nitro_attestation': async (frame) => {
    const bytes = bcs.byteVector().parse(frame.pure(0));
    const verdict = await predictRegistration(bytes, frame.context.nowMs, frame.context.root);
    if (verdict.abort !== null) throw frame.abort(verdict.abort);
    const { pcrs, publicKey, timestamp } = decodeAttestation(bytes);
    return [new Document(pcrs, publicKey ?? new Uint8Array(), timestamp)];
  },
  'package::make_immutable': (frame) => {
    frame.changes.delete((frame.call.args[0] as LedgerObject).id);
    return nothing;
  },
  'package::authorize_upgrade': (frame) => {
    const cap = frame.call.args[0] as LedgerObject;
    const { package: packageId, policy } = UpgradeCap.parse(cap.content);
    if (bcs.u8().parse(frame.pure(1)) < policy) throw frame.abort(1);
    return [new UpgradeTicket(cap.id, packageId, bcs.byteVector().parse(frame.pure(2)))];
  },
  'package::commit_upgrade': (frame) => {
    const cap = frame.call.args[0] as LedgerObject;
    const receipt = frame.call.args[1] as UpgradeReceipt;
    if (receipt.capId !== cap.id) throw frame.abort(4);
    const value = UpgradeCap.parse(cap.content);
    const version = (BigInt(value.version) + 1n).toString();
    const content = UpgradeCap.serialize({ ...value, package: receipt.packageId, version }).toBytes();
    frame.changes.write({ ...cap, content });
    return nothing;
  },
  'enclave::new_cap_from_publisher': (frame) => {
    const { type, content } = frame.call.args[0] as LedgerObject;
    if (type !== PUBLISHER) throw new TypeMismatch();
    const publisher = Publisher.parse(content);
    const [packageId, module] = (frame.call.typeArguments[0] ?? '').split('::');
    const isOfModule = `0x${publisher.package}` === packageId && publisher.module_name === module;
    if (!isOfModule) throw frame.abort('ENotPublisher');
    return frame.returned(frame.type('EnclaveCap'), (id) => bcs.Address.serialize(id).toBytes());
  },
  'enclave::create_enclave_config': (frame) => {
    frame.newConfig();
    return nothing;
  },
  'enclave::new_enclave_config': (frame) => [frame.newConfig()],
  'enclave::share_config': (frame) => {
    frame.object(0, 'EnclaveConfig');
    return nothing;
  },
  'enclave::update_pcrs': (frame) => {
    frame.updatePcrs();
    return nothing;
  },
  'enclave::update_name': (frame) => {
    frame.write({ ...frame.administered(), name: bcs.string().parse(frame.pure(2)) });
    return nothing;
  },
  'enclave::update_max_key_age': (frame) => {
    const config = frame.administered();
    const max_key_age_ms = bcs.option(bcs.u64()).parse(frame.pure(2));
    if (max_key_age_ms === '0') throw frame.abort('EInvalidKeyAge');
    frame.write({ ...config, max_key_age_ms });
    return nothing;
  },
  'enclave::retire': (frame) => {
    frame.write({ ...frame.administered(), is_retired: true });
    return nothing;
  },
  'enclave::new_registrar_cap': (frame) => {
    const config = frame.administered();
    const content = (id: string) => Registrar.serialize({ id, config_id: config.id }).toBytes();
    const results = frame.returned(frame.type('RegistrarCap'), content);
    frame.write({ ...config, registrars: [...config.registrars, results[0]?.id ?? ''] });
    return results;
  },
  'enclave::revoke_registrar_cap': (frame) => {
    const config = frame.config(0);
    frame.assertCap(config, 1);
    const id = bcs.Address.parse(frame.pure(2));
    if (!config.registrars.includes(id)) throw frame.abort('ENotRegistrar');
    frame.removeRegistrar(config, id);
    return nothing;
  },
  'enclave::destroy_registrar_cap': (frame) => {
    const registrar = frame.object(0, 'RegistrarCap');
    const config = frame.config(1);
    if (Registrar.parse(registrar.content).config_id !== config.id) throw frame.abort('EWrongConfig');
    frame.removeRegistrar(config, registrar.id);
    frame.changes.delete(registrar.id);
    return nothing;
  },
  'enclave::register_enclave': (frame) => {
    registered(frame);
    return nothing;
  },
  'enclave::new_enclave': (frame) => [registered(frame)],
  'enclave::share_enclave': (frame) => {
    frame.object(0, 'Enclave');
    return nothing;
  },
  'enclave::register_enclave_as_registrar': (frame) => {
    const config = frame.config(0);
    const { id } = frame.object(1, 'RegistrarCap');
    if (!config.registrars.includes(id))
      throw frame.abort('ENotRegistrar', 'enclave', 'enclave_of_registrar');
    frame.register(config, frame.call.args[2] as Document);
    return nothing;
  },
  'enclave::begin_rotation': (frame) => [new Rotation(frame.updatePcrs())],
  'enclave::finish_rotation': (frame) => {
    const config = frame.config(1);
    const { configId } = frame.call.args[0] as Rotation;
    if (configId !== config.id) throw frame.abort('EWrongConfig', 'enclave', 'successor_of');
    frame.assertCap(config, 2);
    frame.register(config, frame.call.args[3] as Document);
    return nothing;
  },
  'enclave::destroy_enclave': (frame) => {
    const { enclave, config } = ofOneConfig(frame, 0, 1);
    frame.assertCap(config, 2);
    frame.changes.delete(enclave.id);
    return nothing;
  },
  'enclave::destroy_old_enclave': (frame) => {
    const { enclave, config } = ofOneConfig(frame, 0, 1);
    if (!isStale(enclave, config) && !config.is_retired) throw frame.abort('ENotStale');
    frame.changes.delete(enclave.id);
    return nothing;
  },
  'weather::update_weather': (frame) => {
    const { enclave, config } = ofOneConfig(frame, 4, 5);
    const location = bcs.string().parse(frame.pure(0));
    const [temperature = 0n, timestamp_ms = 0n] = [1, 2].map((index) =>
      BigInt(bcs.u64().parse(frame.pure(index))),
    );
    const payload = { location, temperature };
    const message = WeatherResponse.message.serialize({ intent: 0, timestamp_ms, payload }).toBytes();
    assertSigned(frame, enclave, config, timestamp_ms, message, bcs.byteVector().parse(frame.pure(3)));
    const content = (id: string) => Nft.serialize({ id, ...payload, timestamp_ms }).toBytes();
    return frame.returned(`${frame.context.original(frame.call.package)}::weather::WeatherNFT`, content);
  },
};

function registered(frame: Frame): LedgerObject {
  const config = frame.config(0);
  frame.assertCap(config, 1);
  return frame.register(config, frame.call.args[2] as Document);
}

function ofOneConfig(frame: Frame, enclaveAt: number, configAt: number) {
  const enclave = Enclave.parse(frame.object(enclaveAt, 'Enclave').content);
  const config = frame.config(configAt);
  if (enclave.config_id !== config.id) throw frame.abort('EWrongConfig', 'enclave', 'assert_config');
  return { enclave, config };
}

function isStale(enclave: EnclaveValue, config: ConfigValue): boolean {
  return BigInt(enclave.config_version) < BigInt(config.config_version);
}

function assertSigned(
  frame: Frame,
  enclave: EnclaveValue,
  config: ConfigValue,
  timestampMs: bigint,
  message: Uint8Array,
  signature: Uint8Array,
): void {
  const abort = (constant: string) => frame.abort(constant, 'enclave', 'assert_signed');
  if (isStale(enclave, config)) throw abort('EInvalidConfigVersion');
  if (config.is_retired) throw abort('ERetired');
  const { nowMs } = frame.context;
  const { max_key_age_ms: maxKeyAge } = config;
  if (maxKeyAge !== null && BigInt(nowMs) - BigInt(enclave.registered_at_ms) > BigInt(maxKeyAge))
    throw abort('EKeyTooOld');
  const age = nowMs - Number(timestampMs);
  if (age < -MAX_AHEAD_MS) throw abort('EInFuture');
  if (age > MAX_AGE_MS) throw abort('ETooOld');
  const x = Buffer.from(enclave.pk).toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  if (!verify(null, message, key, signature)) throw abort('EInvalidSignature');
}

/** Runs one call and returns its results. @throws MoveAbort */
export async function runCall(context: ExecutionContext, call: Call): Promise<readonly unknown[]> {
  const { package: id, module, function: name } = call;
  const body = FUNCTIONS[`${module}::${name}`];
  if (body === undefined) throw new Error(`the model has no ${id}::${module}::${name}`);
  return await body(new Frame(context, call));
}

/** Creates what publishing the two packages as one creates: the upgrade capability and the enclave capability. */
export function publish(context: ExecutionContext): { packageId: string; upgradeCap: LedgerObject } {
  const { changes, sender } = context;
  const owner = { kind: 'address', address: sender } as const;
  const packageId = changes.freshId();
  const upgradeCap = changes.create('0x2::package::UpgradeCap', owner, (id) =>
    UpgradeCap.serialize({ id, package: packageId, version: 1, policy: 0 }).toBytes(),
  );
  const type = `${packageId}::enclave::EnclaveCap<${packageId}::weather::WEATHER>`;
  changes.create(type, owner, (id) => bcs.Address.serialize(id).toBytes());
  return { packageId, upgradeCap: changes.get(upgradeCap) as LedgerObject };
}

function objectOf(value: unknown, struct: string): LedgerObject {
  const object = value as LedgerObject | undefined;
  const [type = ''] = normalizeStructTag(object?.type ?? '0x0::no::Object').split('<');
  if (!type.endsWith(`::enclave::${struct}`)) throw new TypeMismatch();
  return object as LedgerObject;
}

/** An argument is not of the parameter's type. */
export class TypeMismatch extends Error {}
