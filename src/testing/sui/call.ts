/** A call of a Move function in the model of the contracts: what it is given, and what the functions share. */
import { bcs } from '@mysten/sui/bcs';
import { deriveObjectID, normalizeStructTag } from '@mysten/sui/utils';
import { ABORT_CODES } from 'sui-enclave/sui/aborts';
import type { Changes, LedgerObject, Owner } from './ledger.ts';
import { Config, type ConfigValue, Enclave, Key, type SourceValue } from './structs.ts';

/** Of `move/enclave`. */
export const PACKAGE_VERSION = '1';

/** A Move function aborts: with the name of an `#[error]` constant, or with a number. */
export class MoveAbort extends Error {
  readonly location: { package: string; module: string; functionName: string };
  readonly constant: string | number;
  /** The code of the `#[error]` constant. */
  readonly code: number | undefined;
  /** The value of the constant, where it is known. */
  readonly text: string | undefined;

  constructor(
    location: MoveAbort['location'],
    constant: string | number,
    { code, text }: { readonly code?: number; readonly text?: string } = {},
  ) {
    super(`${location.module}::${constant}`);
    this.location = location;
    this.constant = constant;
    this.code = code ?? ABORT_CODES[this.message];
    this.text = text;
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

/** An argument is not of the parameter's type. */
export class TypeMismatch extends Error {
  readonly argument: number;

  constructor(argument = 0) {
    super();
    this.argument = argument;
  }
}

/** A verified attestation document. */
export class Document {
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  readonly publicKey: Uint8Array;
  readonly timestampMs: number;

  constructor(pcrs: ReadonlyMap<number, Uint8Array>, publicKey: Uint8Array, timestampMs: number) {
    this.pcrs = pcrs;
    this.publicKey = publicKey;
    this.timestampMs = timestampMs;
  }
}

/** An `Option<Source>`. */
export class OptionalSource {
  readonly value: SourceValue | null;

  constructor(value: SourceValue | null) {
    this.value = value;
  }
}

/** A value without abilities: a transaction that leaves one is invalid. */
export abstract class HotPotato {}

export class Rotation extends HotPotato {
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

/** The id of an enclave at the config's version. @param original the first id of the package `enclave` */
export function enclaveIdOf(original: string, { id, config_version }: ConfigValue, pk: Uint8Array): string {
  return deriveObjectID(
    id,
    `${original}::enclave::EnclaveKey`,
    Key.serialize({ config_version, pk }).toBytes(),
  );
}

/** One call, with what the functions of the contract share. */
export class Frame {
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
    const object = this.call.args[index];
    if (!isObject(object) || object.type !== normalizeStructTag(this.type(struct, object)))
      throw new TypeMismatch(index);
    return object;
  }

  /** @param used an object whose type argument it is, where the call has none of its own */
  type(struct: string, used?: LedgerObject): string {
    const { package: id, typeArguments } = this.call;
    const [application = /<(.*)>$/.exec(used?.type ?? '')?.[1]] = typeArguments;
    return `${this.context.original(id)}::enclave::${struct}<${application}>`;
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
    this.assertVersion(config);
    return cap;
  }

  assertVersion({ package_version }: ConfigValue): void {
    if (package_version !== PACKAGE_VERSION)
      throw this.abort('EWrongPackageVersion', 'enclave', 'assert_version');
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

  source(index: number): SourceValue | null {
    const source = this.call.args[index];
    if (!(source instanceof OptionalSource)) throw new TypeMismatch();
    return source.value;
  }

  /** @param untilMs the end of an overlap that this begins */
  updatePcrs(source: SourceValue | null, untilMs?: string): string {
    const config = this.administered();
    const config_version = (BigInt(config.config_version) + 1n).toString();
    const overlap = untilMs === undefined ? null : { pcrs: config.pcrs, until_ms: untilMs };
    this.write({ ...config, pcrs: this.pcrs(2), source, config_version, overlap });
    return config.id;
  }

  isOverlapping({ overlap }: ConfigValue): boolean {
    return overlap !== null && BigInt(this.context.nowMs) < BigInt(overlap.until_ms);
  }

  newConfig(source: SourceValue | null): LedgerObject {
    const cap = this.object(0, 'EnclaveCap');
    const name = bcs.string().parse(this.pure(1));
    const pcrs = this.pcrs(2);
    const content = (id: string) =>
      Config.serialize({
        id,
        name,
        pcrs,
        source,
        capability_id: cap.id,
        config_version: 0,
        overlap: null,
        max_key_age_ms: null,
        registrars: [],
        is_retired: false,
        package_version: PACKAGE_VERSION,
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
    const address = enclaveIdOf(this.context.original(this.call.package), config, pk);
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

/** What a Move function returns, and writes through its frame. @throws MoveAbort, TypeMismatch */
export type MoveFunction = (frame: Frame) => readonly unknown[] | Promise<readonly unknown[]>;

export const nothing: readonly unknown[] = [];

function isObject(value: unknown): value is LedgerObject {
  return typeof value === 'object' && value !== null && 'content' in value;
}
