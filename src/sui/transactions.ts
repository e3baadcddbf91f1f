/**
 * The calls of `move/enclave`, as commands that are added to a transaction. Browser-safe: a dapp adds them to
 * a transaction of its own and has a wallet sign it.
 *
 * They check what can be checked without a node. Packages are call targets: give the latest version.
 */
import type { Transaction } from '@mysten/sui/transactions';
import type { Image } from '../attestation/image.ts';
import { InvalidValueError } from './errors.ts';
import { addressOf, bytesOf, registersOf, structTypeOf, textOf } from './values.ts';

/** A call into the module `enclave` for one application. */
interface EnclaveCall {
  /** The package that holds `enclave::enclave`. */
  readonly enclavePackage: string;
  /** The type `T` of the application: see `applicationType`. */
  readonly application: string;
}

/** Larger than any attestation document (its payload has at most 16383 bytes), and below what a pure argument holds. */
const MAX_ATTESTATION_SIZE = 16_380;

function target({ enclavePackage, application }: EnclaveCall, name: string) {
  return {
    target: `${addressOf('the package of the enclave', enclavePackage)}::enclave::${name}`,
    typeArguments: [structTypeOf('the application', application)],
  };
}

function bytes(tx: Transaction, value: Uint8Array) {
  return tx.pure.vector('u8', value);
}

function nameOf(tx: Transaction, name: string) {
  if (typeof name !== 'string' || name.trim() === '') {
    throw new InvalidValueError('a config has a name that people recognise');
  }
  return tx.pure(textOf('the name of the config', name));
}

/** Makes and shares a config at version 0, which allows this image. */
export function createEnclaveConfig(
  tx: Transaction,
  call: EnclaveCall & { readonly capId: string; readonly name: string; readonly image: Image },
): void {
  tx.moveCall({
    ...target(call, 'create_enclave_config'),
    arguments: [
      tx.object(addressOf('the id of the capability', call.capId)),
      nameOf(tx, call.name),
      ...registersOf(call.image).map((register) => bytes(tx, register)),
    ],
  });
}

/** Allows another image in place of the one before: each enclave registered so far is stale then. */
export function updatePcrs(
  tx: Transaction,
  call: EnclaveCall & { readonly configId: string; readonly capId: string; readonly image: Image },
): void {
  tx.moveCall({
    ...target(call, 'update_pcrs'),
    arguments: [
      tx.object(addressOf('the id of the config', call.configId)),
      tx.object(addressOf('the id of the capability', call.capId)),
      ...registersOf(call.image).map((register) => bytes(tx, register)),
    ],
  });
}

/** Names a config anew. */
export function updateName(
  tx: Transaction,
  call: EnclaveCall & { readonly configId: string; readonly capId: string; readonly name: string },
): void {
  tx.moveCall({
    ...target(call, 'update_name'),
    arguments: [
      tx.object(addressOf('the id of the config', call.configId)),
      tx.object(addressOf('the id of the capability', call.capId)),
      nameOf(tx, call.name),
    ],
  });
}

/**
 * Has the chain verify an attestation document and registers the enclave that it is of. Ask `predictRegistration`
 * of `sui-enclave/attestation` first: a document that does not verify costs gas too.
 */
export function registerEnclave(
  tx: Transaction,
  call: EnclaveCall & { readonly configId: string; readonly capId: string; readonly attestation: Uint8Array },
): void {
  const attestation = bytesOf('the attestation document', call.attestation, {
    min: 1,
    max: MAX_ATTESTATION_SIZE,
  });
  const document = tx.moveCall({
    target: '0x2::nitro_attestation::load_nitro_attestation',
    arguments: [bytes(tx, attestation), tx.object.clock()],
  });
  tx.moveCall({
    ...target(call, 'register_enclave'),
    arguments: [
      tx.object(addressOf('the id of the config', call.configId)),
      tx.object(addressOf('the id of the capability', call.capId)),
      document,
    ],
  });
}

/** Destroys an enclave, stale or not: for the holder of the capability. */
export function destroyEnclave(
  tx: Transaction,
  call: EnclaveCall & { readonly enclaveId: string; readonly configId: string; readonly capId: string },
): void {
  tx.moveCall({
    ...target(call, 'destroy_enclave'),
    arguments: [
      tx.object(addressOf('the id of the enclave', call.enclaveId)),
      tx.object(addressOf('the id of the config', call.configId)),
      tx.object(addressOf('the id of the capability', call.capId)),
    ],
  });
}

/** Destroys a stale enclave: for anyone. */
export function destroyOldEnclave(
  tx: Transaction,
  call: EnclaveCall & { readonly enclaveId: string; readonly configId: string },
): void {
  tx.moveCall({
    ...target(call, 'destroy_old_enclave'),
    arguments: [
      tx.object(addressOf('the id of the enclave', call.enclaveId)),
      tx.object(addressOf('the id of the config', call.configId)),
    ],
  });
}

/** Publishes compiled modules, and hands the capability of upgrading them to `owner`. */
export function publishPackage(
  tx: Transaction,
  call: {
    /** Bytecode in base64. */
    readonly modules: readonly string[];
    /** Ids of the packages that it links to. */
    readonly dependencies: readonly string[];
    readonly owner: string;
  },
): void {
  if (call.modules.length === 0) throw new InvalidValueError('a package has at least one module');
  const upgradeCap = tx.publish({ modules: [...call.modules], dependencies: [...call.dependencies] });
  tx.transferObjects([upgradeCap], addressOf('the owner', call.owner));
}
