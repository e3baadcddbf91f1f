/** A model of the functions of `move/enclave`. */
import { createPublicKey, verify } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import {
  type Document,
  type Frame,
  type MoveFunction,
  nothing,
  OptionalSource,
  PACKAGE_VERSION,
  Rotation,
  TypeMismatch,
} from './call.ts';
import type { LedgerObject } from './ledger.ts';
import { type ConfigValue, Enclave, type EnclaveValue, PUBLISHER, Publisher, Registrar } from './structs.ts';

const MAX_AGE_MS = 90 * 60_000;
const MAX_AHEAD_MS = 60_000;
const MAX_OVERLAP_MS = 24n * 3_600_000n;

/** By module and name. A new object is created as a shared one: what remains of `share_…` is the check of its type. */
export const ENCLAVE: Readonly<Record<string, MoveFunction>> = {
  'source::none': () => [new OptionalSource(null)],
  'source::some': (frame) => {
    const text = (index: number) => bcs.string().parse(frame.pure(index));
    const bytes = (index: number) => bcs.byteVector().parse(frame.pure(index));
    const isPrintable = (value: string, min: number, max: number) =>
      /^[ -~]*$/.test(value) && value.length >= min && value.length <= max;
    const [url, folder, framework_version] = [text(0), text(2), text(3)];
    const [commit, measurements_sha256] = [bytes(1), bytes(4)];
    if (!isPrintable(url, 1, 200)) throw frame.abort('ESourceUrl');
    if (commit.length !== 20 && commit.length !== 32) throw frame.abort('ECommitLength');
    if (!isPrintable(folder, 0, 100)) throw frame.abort('EFolder');
    if (!isPrintable(framework_version, 1, 50)) throw frame.abort('EFrameworkVersion');
    if (measurements_sha256.length !== 32) throw frame.abort('EMeasurementsLength');
    return [new OptionalSource({ url, commit, folder, framework_version, measurements_sha256 })];
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
    frame.newConfig(null);
    return nothing;
  },
  'enclave::new_enclave_config': (frame) => [frame.newConfig(frame.source(5))],
  'enclave::share_config': (frame) => {
    frame.object(0, 'EnclaveConfig');
    return nothing;
  },
  'enclave::update_pcrs': (frame) => {
    frame.updatePcrs(null);
    return nothing;
  },
  'enclave::update_image': (frame) => {
    frame.updatePcrs(frame.source(5));
    return nothing;
  },
  'enclave::begin_overlap': (frame) => {
    const config = frame.administered();
    if (frame.isOverlapping(config)) throw frame.abort('EOverlapping');
    const until = bcs.u64().parse(frame.pure(6));
    const length = BigInt(until) - BigInt(frame.context.nowMs);
    if (length <= 0n || length > MAX_OVERLAP_MS) throw frame.abort('EInvalidOverlap');
    frame.updatePcrs(frame.source(5), until);
    return nothing;
  },
  'enclave::end_overlap': (frame) => {
    const config = frame.administered();
    if (config.overlap === null) throw frame.abort('ENoOverlap');
    frame.write({ ...config, overlap: null });
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
  'enclave::migrate': (frame) => {
    const config = frame.config(0);
    if (config.capability_id !== frame.object(1, 'EnclaveCap').id)
      throw frame.abort('EInvalidCap', 'enclave', 'assert_cap');
    if (BigInt(config.package_version) >= BigInt(PACKAGE_VERSION)) throw frame.abort('ENotOlder');
    frame.write({ ...config, package_version: PACKAGE_VERSION });
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
    frame.assertVersion(config);
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
    frame.assertVersion(config);
    if (!config.registrars.includes(id))
      throw frame.abort('ENotRegistrar', 'enclave', 'enclave_of_registrar');
    frame.register(config, frame.call.args[2] as Document);
    return nothing;
  },
  'enclave::begin_rotation': (frame) => [new Rotation(frame.updatePcrs(frame.source(5)))],
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
    frame.assertVersion(config);
    if (!isStale(frame, enclave, config) && !config.is_retired) throw frame.abort('ENotStale');
    frame.changes.delete(enclave.id);
    return nothing;
  },
};

function registered(frame: Frame): LedgerObject {
  const config = frame.config(0);
  frame.assertCap(config, 1);
  return frame.register(config, frame.call.args[2] as Document);
}

export function ofOneConfig(frame: Frame, enclaveAt: number, configAt: number) {
  const enclave = Enclave.parse(frame.object(enclaveAt, 'Enclave').content);
  const config = frame.config(configAt);
  if (enclave.config_id !== config.id) throw frame.abort('EWrongConfig', 'enclave', 'assert_config');
  return { enclave, config };
}

function isStale(frame: Frame, enclave: EnclaveValue, config: ConfigValue): boolean {
  const behind = BigInt(config.config_version) - BigInt(enclave.config_version);
  return behind > (frame.isOverlapping(config) ? 1n : 0n);
}

export function assertSigned(
  frame: Frame,
  enclave: EnclaveValue,
  config: ConfigValue,
  timestampMs: bigint,
  message: Uint8Array,
  signature: Uint8Array,
): void {
  const abort = (constant: string) => frame.abort(constant, 'enclave', 'assert_signed');
  frame.assertVersion(config);
  if (isStale(frame, enclave, config)) throw abort('EInvalidConfigVersion');
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
