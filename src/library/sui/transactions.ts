/**
 * The calls of `move/enclave`: each function adds one call to a transaction. Browser-safe: a dapp adds the
 * calls to its own transaction, which a wallet signs.
 *
 * The functions check what can be checked without a node, and throw a SuiError (SUI_VALUE) or, for an image,
 * an AttestationError. Package ids are call targets: pass the latest version.
 */
import type { Transaction, TransactionObjectArgument, TransactionResult } from '@mysten/sui/transactions';
import type { Image } from '../attestation/image.ts';
import type { U64Input } from '../wire/bcs.ts';
import { type ObjectInput, objectArgument as object } from './arguments.ts';
import type { Source } from './structs.ts';
import {
  checkAddress,
  checkBytes,
  checkStructType,
  encodeRegisters,
  encodeSource,
  encodeText,
  encodeU64,
  invalidValue,
} from './values.ts';

/** A call of the module `enclave` for one application. */
export interface EnclaveCall {
  /** The package that holds `enclave::enclave`. */
  readonly enclavePackage: string;
  /** The type `T` of the application: see `applicationType`. */
  readonly application: string;
}

export interface ConfigCall extends EnclaveCall {
  readonly configId: ObjectInput;
}

/** A call that needs the capability with which the config was created. */
export interface AdminCall extends ConfigCall {
  readonly capId: ObjectInput;
}

/**
 * Maximum size of a document in bytes. Every real document is smaller, and a document of this size still fits
 * into a pure argument.
 */
const MAX_ATTESTATION_SIZE = 16_380;

function target({ enclavePackage, application }: EnclaveCall, name: string) {
  return {
    target: `${checkAddress('the package of the enclave', enclavePackage)}::enclave::${name}`,
    typeArguments: [checkStructType('the application', application)],
  };
}

/** Returns the config and its capability: the first two arguments of most calls. */
function adminArguments(tx: Transaction, { configId, capId }: AdminCall) {
  return [object(tx, 'config', configId), object(tx, 'capability', capId)];
}

function pcrArguments(tx: Transaction, image: Image) {
  return encodeRegisters(image).map((register) => bytesArgument(tx, register));
}

function bytesArgument(tx: Transaction, value: Uint8Array) {
  return tx.pure.vector('u8', value);
}

/** Adds a separate call that creates an `Option<Source>`, and returns its result. */
function createSourceOption(tx: Transaction, { enclavePackage }: EnclaveCall, source: Source | undefined) {
  const module = `${checkAddress('the package of the enclave', enclavePackage)}::source`;
  if (source === undefined) return tx.moveCall({ target: `${module}::none` });
  const fields = encodeSource(source).map((field) => tx.pure(field));
  return tx.moveCall({ target: `${module}::some`, arguments: fields });
}

function createName(tx: Transaction, name: string) {
  if (typeof name !== 'string' || name.trim() === '') {
    throw invalidValue('the name of the config must be a string that is not blank');
  }
  return tx.pure(encodeText('the name of the config', name));
}

/**
 * Creates the capability of an application whose module is on chain already, with the package's Publisher.
 * Transfer the returned capability to its owner in the same transaction.
 */
export function newCapFromPublisher(
  tx: Transaction,
  call: EnclaveCall & { readonly publisherId: ObjectInput },
): TransactionResult {
  return tx.moveCall({
    ...target(call, 'new_cap_from_publisher'),
    arguments: [object(tx, 'publisher', call.publisherId)],
  });
}

/** The image that a config will allow. */
export interface Allowed {
  readonly image: Image;
  /** Source of the image. Default: the config has no source, even if it had one before. */
  readonly source?: Source | undefined;
}

export interface Creation extends EnclaveCall, Allowed {
  readonly capId: ObjectInput;
  readonly name: string;
  /**
   * Whether anyone may register enclaves of the image, on any host, for as long as the config exists. Not for
   * an image that needs secrets. Default: false.
   */
  readonly isOpen?: boolean | undefined;
}

function creationArguments(tx: Transaction, call: Creation) {
  return [object(tx, 'capability', call.capId), createName(tx, call.name), ...pcrArguments(tx, call.image)];
}

/** Creates and shares a config at version 0, which allows this image. */
export function createEnclaveConfig(tx: Transaction, call: Creation): void {
  if (call.source !== undefined || call.isOpen)
    shareConfig(tx, { ...call, config: newEnclaveConfig(tx, call) });
  else tx.moveCall({ ...target(call, 'create_enclave_config'), arguments: creationArguments(tx, call) });
}

/**
 * Creates a config for further calls of the same transaction. The last of these calls must be `shareConfig`.
 */
export function newEnclaveConfig(tx: Transaction, call: Creation): TransactionResult {
  const callArguments = creationArguments(tx, call);
  return tx.moveCall({
    ...target(call, call.isOpen ? 'new_open_enclave_config' : 'new_enclave_config'),
    arguments: [...callArguments, createSourceOption(tx, call, call.source)],
  });
}

/** Shares a config that `newEnclaveConfig` returned. */
export function shareConfig(
  tx: Transaction,
  call: EnclaveCall & { readonly config: TransactionObjectArgument },
): void {
  tx.moveCall({ ...target(call, 'share_config'), arguments: [object(tx, 'config', call.config)] });
}

/**
 * Allows another image instead of the current one: every enclave registered so far becomes stale immediately.
 */
export function updatePcrs(tx: Transaction, call: AdminCall & Allowed): void {
  const callArguments = [...adminArguments(tx, call), ...pcrArguments(tx, call.image)];
  if (call.source === undefined) tx.moveCall({ ...target(call, 'update_pcrs'), arguments: callArguments });
  else {
    const source = createSourceOption(tx, call, call.source);
    tx.moveCall({ ...target(call, 'update_image'), arguments: [...callArguments, source] });
  }
}

/**
 * Allows another image, and lets contracts accept enclaves of the present version until `untilMs`, in
 * milliseconds since the Unix epoch: at most 24 hours from now. Aborts in an overlap.
 */
export function beginOverlap(
  tx: Transaction,
  call: AdminCall & Allowed & { readonly untilMs: U64Input },
): void {
  const callArguments = [...adminArguments(tx, call), ...pcrArguments(tx, call.image)];
  const until = tx.pure(encodeU64('the end of the overlap', call.untilMs));
  tx.moveCall({
    ...target(call, 'begin_overlap'),
    arguments: [...callArguments, createSourceOption(tx, call, call.source), until, tx.object.clock()],
  });
}

/** Ends an overlap immediately: enclaves of the version before become stale. */
export function endOverlap(tx: Transaction, call: AdminCall): void {
  tx.moveCall({ ...target(call, 'end_overlap'), arguments: adminArguments(tx, call) });
}

/** Renames a config. Nothing else changes. */
export function updateName(tx: Transaction, call: AdminCall & { readonly name: string }): void {
  tx.moveCall({
    ...target(call, 'update_name'),
    arguments: [...adminArguments(tx, call), createName(tx, call.name)],
  });
}

/** Sets the maximum age of accepted keys, in milliseconds since their attestation; null: no maximum. */
export function updateMaxKeyAge(
  tx: Transaction,
  call: AdminCall & { readonly maxKeyAgeMs: U64Input | null },
): void {
  tx.moveCall({
    ...target(call, 'update_max_key_age'),
    arguments: [...adminArguments(tx, call), maxKeyAgeArgument(tx, call.maxKeyAgeMs)],
  });
}

function maxKeyAgeArgument(tx: Transaction, age: U64Input | null) {
  // An Option<u64> in BCS.
  if (age === null) return tx.pure(Uint8Array.of(0));
  const value = encodeU64('the maximum key age', age);
  if (value.every((byte) => byte === 0)) throw invalidValue('the maximum key age must be more than 0 ms');
  return tx.pure(Uint8Array.of(1, ...value));
}

/** Retires a config, permanently. */
export function retireConfig(tx: Transaction, call: AdminCall): void {
  tx.moveCall({ ...target(call, 'retire'), arguments: adminArguments(tx, call) });
}

/** Migrates a config to the package version that is called. Earlier versions then refuse the config. */
export function migrateConfig(tx: Transaction, call: AdminCall): void {
  tx.moveCall({ ...target(call, 'migrate'), arguments: adminArguments(tx, call) });
}

/**
 * Creates a registrar: a capability to register enclaves of the config's present image, until it is revoked.
 * Transfer the returned capability to its owner in the same transaction.
 */
export function newRegistrarCap(tx: Transaction, call: AdminCall): TransactionResult {
  return tx.moveCall({ ...target(call, 'new_registrar_cap'), arguments: adminArguments(tx, call) });
}

/** Revokes a registrar, regardless of its owner. The enclaves that it registered remain. */
export function revokeRegistrarCap(
  tx: Transaction,
  call: AdminCall & {
    /** The id of the RegistrarCap, not the object, since the admin who revokes it does not own it. */
    readonly registrarId: string;
  },
): void {
  const id = checkAddress('the id of the registrar', call.registrarId);
  tx.moveCall({
    ...target(call, 'revoke_registrar_cap'),
    arguments: [...adminArguments(tx, call), tx.pure.id(id)],
  });
}

/** Destroys a registrar that the sender owns. */
export function destroyRegistrarCap(
  tx: Transaction,
  call: ConfigCall & { readonly registrarId: ObjectInput },
): void {
  tx.moveCall({
    ...target(call, 'destroy_registrar_cap'),
    arguments: [object(tx, 'registrar', call.registrarId), object(tx, 'config', call.configId)],
  });
}

/**
 * Adds a call in which the chain verifies an attestation document, for a later call of the transaction. Call
 * `predictRegistration` of `sui-enclave/attestation` first: a document that doesn't verify also costs gas.
 *
 * Load every document before the other calls. The chain's function is a private entry function that takes the
 * clock. Sui refuses this call (`InvalidArgumentToPrivateEntryFunction`) if an earlier call used the clock
 * together with one of these:
 *
 * - an object that is not shared yet, as `newEnclaveConfig` and `newEnclave` return it;
 * - a shared object by value, as `destroyEnclave` and `destroyOldEnclave` take it.
 */
export function loadAttestation(tx: Transaction, attestation: Uint8Array): TransactionResult {
  const document = checkBytes('the attestation document', attestation, { min: 1, max: MAX_ATTESTATION_SIZE });
  return tx.moveCall({
    target: '0x2::nitro_attestation::load_nitro_attestation',
    arguments: [bytesArgument(tx, document), tx.object.clock()],
  });
}

/**
 * An attestation document: its bytes, or the result of `loadAttestation`. A call that gets the bytes loads
 * them itself. A transaction that creates or destroys something before this call needs the result of
 * `loadAttestation`.
 */
export type AttestationInput = Uint8Array | TransactionObjectArgument;

function documentArgument(tx: Transaction, attestation: AttestationInput) {
  if (attestation instanceof Uint8Array) return loadAttestation(tx, attestation);
  return object(tx, 'attestation document', attestation);
}

/** Registers the enclave that the document attests. */
export function registerEnclave(
  tx: Transaction,
  call: AdminCall & { readonly attestation: AttestationInput },
): void {
  const document = documentArgument(tx, call.attestation);
  tx.moveCall({ ...target(call, 'register_enclave'), arguments: [...adminArguments(tx, call), document] });
}

/**
 * Registers an enclave for further calls of the same transaction. The last of these calls must be
 * `shareEnclave`.
 */
export function newEnclave(
  tx: Transaction,
  call: AdminCall & { readonly attestation: AttestationInput },
): TransactionResult {
  const document = documentArgument(tx, call.attestation);
  return tx.moveCall({ ...target(call, 'new_enclave'), arguments: [...adminArguments(tx, call), document] });
}

/** Shares an enclave that `newEnclave` returned. */
export function shareEnclave(
  tx: Transaction,
  call: EnclaveCall & { readonly enclave: TransactionObjectArgument },
): void {
  tx.moveCall({ ...target(call, 'share_enclave'), arguments: [object(tx, 'enclave', call.enclave)] });
}

/** Registers the enclave that the document attests, as a registrar of the config. */
export function registerEnclaveAsRegistrar(
  tx: Transaction,
  call: ConfigCall & { readonly registrarId: ObjectInput; readonly attestation: AttestationInput },
): void {
  const document = documentArgument(tx, call.attestation);
  tx.moveCall({
    ...target(call, 'register_enclave_as_registrar'),
    arguments: [object(tx, 'config', call.configId), object(tx, 'registrar', call.registrarId), document],
  });
}

/**
 * Registers the enclave that the document attests, under an open config. Needs no capability: anyone can
 * register an enclave whose attestation document is at most 10 minutes old.
 */
export function registerEnclaveAsAnyone(
  tx: Transaction,
  call: ConfigCall & { readonly attestation: AttestationInput },
): void {
  const document = documentArgument(tx, call.attestation);
  tx.moveCall({
    ...target(call, 'register_enclave_as_anyone'),
    arguments: [object(tx, 'config', call.configId), document, tx.object.clock()],
  });
}

/**
 * Allows another image in a transaction that also registers an enclave of this image. Call `loadAttestation`
 * before, and `finishRotation` after it.
 */
export function beginRotation(tx: Transaction, call: AdminCall & Allowed): TransactionResult {
  const callArguments = [...adminArguments(tx, call), ...pcrArguments(tx, call.image)];
  return tx.moveCall({
    ...target(call, 'begin_rotation'),
    arguments: [...callArguments, createSourceOption(tx, call, call.source)],
  });
}

/** Registers the successor, an enclave of the new image. */
export function finishRotation(
  tx: Transaction,
  call: AdminCall & {
    /** The result of `beginRotation`. */
    readonly rotation: TransactionObjectArgument;
    /** The result of `loadAttestation`. */
    readonly document: TransactionObjectArgument;
  },
): void {
  tx.moveCall({
    ...target(call, 'finish_rotation'),
    arguments: [
      object(tx, 'rotation', call.rotation),
      ...adminArguments(tx, call),
      object(tx, 'document', call.document),
    ],
  });
}

/** Destroys an enclave, stale or not. Only the holder of the capability can do that. */
export function destroyEnclave(tx: Transaction, call: AdminCall & { readonly enclaveId: ObjectInput }): void {
  tx.moveCall({
    ...target(call, 'destroy_enclave'),
    arguments: [object(tx, 'enclave', call.enclaveId), ...adminArguments(tx, call)],
  });
}

/** Destroys an enclave that is stale, or whose config is retired. Anyone can do that. */
export function destroyOldEnclave(
  tx: Transaction,
  call: ConfigCall & { readonly enclaveId: ObjectInput },
): void {
  tx.moveCall({
    ...target(call, 'destroy_old_enclave'),
    arguments: [
      object(tx, 'enclave', call.enclaveId),
      object(tx, 'config', call.configId),
      tx.object.clock(),
    ],
  });
}

/** Compiled modules, and the packages that they depend on. */
export interface Bytecode {
  /** Bytecode of the modules in base64. */
  readonly modules: readonly string[];
  /** Ids of the packages that the modules depend on. */
  readonly dependencies: readonly string[];
}

function checkBytecode({ modules, dependencies }: Bytecode) {
  if (modules.length === 0) throw invalidValue('a package must have at least one module');
  return { modules: [...modules], dependencies: [...dependencies] };
}

/**
 * Publishes compiled modules, and transfers the upgrade capability to `owner`. If `owner` is null, destroys
 * the capability, so that the package can never be upgraded.
 */
export function publishPackage(tx: Transaction, call: Bytecode & { readonly owner: string | null }): void {
  const upgradeCap = tx.publish(checkBytecode(call));
  if (call.owner !== null) tx.transferObjects([upgradeCap], checkAddress('the owner', call.owner));
  else tx.moveCall({ target: '0x2::package::make_immutable', arguments: [upgradeCap] });
}

/** Upgrades a package to compiled modules. */
export function upgradePackage(
  tx: Transaction,
  call: Bytecode & {
    readonly upgradeCapId: ObjectInput;
    /** The latest version of the package. */
    readonly packageId: string;
    /** Blake2b-256 digest of modules and dependencies, 32 bytes. */
    readonly digest: Uint8Array;
    /** The policy of the upgrade capability: 0 is compatible, 128 additive, 192 dependencies only. */
    readonly policy: number;
  },
): void {
  const cap = object(tx, 'upgrade capability', call.upgradeCapId);
  const digest = checkBytes('the digest', call.digest, { min: 32, max: 32 });
  const ticket = tx.moveCall({
    target: '0x2::package::authorize_upgrade',
    arguments: [cap, tx.pure.u8(call.policy), bytesArgument(tx, digest)],
  });
  const packageId = checkAddress('the package', call.packageId);
  const receipt = tx.upgrade({ ...checkBytecode(call), package: packageId, ticket });
  tx.moveCall({ target: '0x2::package::commit_upgrade', arguments: [cap, receipt] });
}
