/**
 * A model of the functions of `move/enclave` and `move/weather`, as their callers see them, for the loopback node, which
 * doesn't run Move. The Move tests show what the contracts themselves do.
 */
import { createPublicKey, verify } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import { deriveObjectID, normalizeStructTag } from '@mysten/sui/utils';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { decodeAttestation, predictRegistration } from '../../../src/attestation/index.ts';
import type { Changes, LedgerObject } from './ledger.ts';

/** A Move function aborts. `name` is set for `#[error]` constants, otherwise the number. */
export class MoveAbort extends Error {
  readonly location: { package: string; module: string; functionName: string };
  readonly constant: string | number;

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

const Config = bcs.struct('EnclaveConfig', {
  id: bcs.Address,
  name: bcs.string(),
  pcrs: bcs.tuple([bcs.byteVector(), bcs.byteVector(), bcs.byteVector()]),
  capability_id: bcs.Address,
  version: bcs.u64(),
});
const Enclave = bcs.struct('Enclave', {
  id: bcs.Address,
  pk: bcs.byteVector(),
  config_id: bcs.Address,
  config_version: bcs.u64(),
});
const Key = bcs.struct('EnclaveKey', { config_version: bcs.u64(), pk: bcs.byteVector() });
const Nft = bcs.struct('WeatherNFT', {
  id: bcs.Address,
  location: bcs.string(),
  temperature: bcs.u64(),
  timestamp_ms: bcs.u64(),
});

/** A verified attestation document. */
class Document {
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  readonly publicKey: Uint8Array;

  constructor(pcrs: ReadonlyMap<number, Uint8Array>, publicKey: Uint8Array) {
    this.pcrs = pcrs;
    this.publicKey = publicKey;
  }
}

const MAX_AGE_MS = 90 * 60_000;
const MAX_AHEAD_MS = 60_000;

/** Runs one call and returns its results. @throws MoveAbort */
export async function runCall(context: ExecutionContext, call: Call): Promise<unknown[]> {
  const { changes } = context;
  const { package: id, module, function: name, args } = call;
  const abort = (constant: string | number, where: string = module, functionName: string = name) =>
    new MoveAbort({ package: id, module: where, functionName }, constant);
  const object = (index: number, struct: string) => objectOf(args[index], struct);
  const pure = (index: number) => args[index] as Uint8Array;
  const pcrsFrom = (index: number) => {
    const pcrs = [0, 1, 2].map((offset) => bcs.byteVector().parse(pure(index + offset)));
    if (pcrs.some((pcr) => pcr.length === 0)) throw abort('EPcrMissing', 'pcrs', 'new');
    if (pcrs.some((pcr) => pcr.length !== 48)) throw abort('EPcrLength', 'pcrs', 'new');
    if (pcrs[0]?.every((byte) => byte === 0)) throw abort('EDebugPcrs', 'pcrs', 'new');
    return pcrs as [Uint8Array, Uint8Array, Uint8Array];
  };
  const checkCap = (config: { capability_id: string }, cap: LedgerObject) => {
    if (config.capability_id !== cap.id) throw abort('EInvalidCap', 'enclave', 'assert_cap');
  };
  const struct = (text: string) => `${context.original(id)}::enclave::${text}<${call.typeArguments[0]}>`;

  switch (`${module}::${name}`) {
    case 'nitro_attestation::load_nitro_attestation': {
      const bytes = bcs.byteVector().parse(pure(0));
      const verdict = await predictRegistration(bytes, context.nowMs, context.root);
      if (verdict.abort !== null) throw abort(verdict.abort);
      const { pcrs, publicKey } = decodeAttestation(bytes);
      return [new Document(pcrs, publicKey ?? new Uint8Array())];
    }
    case 'enclave::create_enclave_config': {
      const cap = object(0, 'EnclaveCap');
      const pcrs = pcrsFrom(2);
      const content = (configId: string) =>
        Config.serialize({
          id: configId,
          name: bcs.string().parse(pure(1)),
          pcrs,
          capability_id: cap.id,
          version: 0,
        }).toBytes();
      changes.create(struct('EnclaveConfig'), changes.shared(), content);
      return [];
    }
    case 'enclave::update_pcrs': {
      const at = object(0, 'EnclaveConfig');
      const config = Config.parse(at.content);
      checkCap(config, object(1, 'EnclaveCap'));
      const next = { ...config, pcrs: pcrsFrom(2), version: BigInt(config.version) + 1n };
      changes.write({ ...at, content: Config.serialize(next).toBytes() });
      return [];
    }
    case 'enclave::register_enclave': {
      const at = object(0, 'EnclaveConfig');
      const config = Config.parse(at.content);
      const document = args[2] as Document;
      checkCap(config, object(1, 'EnclaveCap'));
      const matches = config.pcrs.every((pcr, index) =>
        Buffer.from(pcr).equals(document.pcrs.get(index) ?? Buffer.alloc(0)),
      );
      if (!matches) throw abort('EInvalidPCRs', 'enclave', 'new_enclave');
      const pk = document.publicKey;
      if (pk.length !== 32) throw abort('EInvalidPublicKey', 'enclave', 'new_enclave');
      const key = Key.serialize({ config_version: config.version, pk }).toBytes();
      const address = deriveObjectID(at.id, `${context.original(id)}::enclave::EnclaveKey`, key);
      if (!changes.claim(at.id, address)) throw abort('EAlreadyRegistered', 'enclave', 'new_enclave');
      const content = (enclaveId: string) =>
        Enclave.serialize({
          id: enclaveId,
          pk,
          config_id: at.id,
          config_version: config.version,
        }).toBytes();
      changes.create(struct('Enclave'), changes.shared(), content, address);
      return [];
    }
    case 'enclave::destroy_enclave':
    case 'enclave::destroy_old_enclave': {
      const at = object(0, 'Enclave');
      const config = Config.parse(object(1, 'EnclaveConfig').content);
      const enclave = Enclave.parse(at.content);
      if (enclave.config_id !== config.id) throw abort('EWrongConfig', 'enclave', 'assert_config');
      if (name === 'destroy_enclave') checkCap(config, object(2, 'EnclaveCap'));
      else if (BigInt(enclave.config_version) >= BigInt(config.version)) throw abort('ENotStale');
      changes.delete(at.id);
      return [];
    }
    case 'weather::update_weather': {
      const enclave = Enclave.parse(object(4, 'Enclave').content);
      const config = Config.parse(object(5, 'EnclaveConfig').content);
      const location = bcs.string().parse(pure(0));
      const [temperature, timestampMs] = [1, 2].map((index) => BigInt(bcs.u64().parse(pure(index))));
      const strict = (constant: string) => abort(constant, 'enclave', 'assert_signed');
      if (enclave.config_id !== config.id) throw strict('EWrongConfig');
      if (BigInt(enclave.config_version) < BigInt(config.version)) throw strict('EInvalidConfigVersion');
      const age = context.nowMs - Number(timestampMs);
      if (age < -MAX_AHEAD_MS) throw strict('EInFuture');
      if (age > MAX_AGE_MS) throw strict('ETooOld');
      const payload = { location, temperature: temperature as bigint };
      const message = WeatherResponse.message
        .serialize({ intent: 0, timestamp_ms: timestampMs as bigint, payload })
        .toBytes();
      const x = Buffer.from(enclave.pk).toString('base64url');
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      if (!verify(null, message, key, bcs.byteVector().parse(pure(3)))) throw strict('EInvalidSignature');
      const content = (nftId: string) =>
        Nft.serialize({ id: nftId, ...payload, timestamp_ms: timestampMs as bigint }).toBytes();
      const owner = { kind: 'address', address: context.sender } as const;
      return [changes.get(changes.create(`${context.original(id)}::weather::WeatherNFT`, owner, content))];
    }
    default:
      throw new Error(`the model has no ${id}::${module}::${name}`);
  }
}

/** Creates what publishing the two packages as one creates: the upgrade capability and the enclave capability. */
export function publish(context: ExecutionContext): { packageId: string; upgradeCap: LedgerObject } {
  const { changes, sender } = context;
  const owner = { kind: 'address', address: sender } as const;
  const idOnly = (id: string) => bcs.Address.serialize(id).toBytes();
  const upgradeCap = changes.create('0x2::package::UpgradeCap', owner, idOnly);
  const packageId = changes.freshId();
  const type = `${packageId}::enclave::EnclaveCap<${packageId}::weather::WEATHER>`;
  changes.create(type, owner, idOnly);
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
