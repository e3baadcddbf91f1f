/**
 * The calls of `move/enclave`, each as a function that adds it to a transaction. Browser-safe: a dapp adds them to
 * its own transaction, which a wallet signs.
 *
 * They check what can be checked without a node, and throw a SuiError (SUI_VALUE) or, for an image, an
 * AttestationError. Package ids are call targets: pass the latest version.
 */
import type { Transaction } from '@mysten/sui/transactions';
import type { Image } from '../attestation/image.ts';
import { addressOf, bytesOf, invalidValue, registersOf, structTypeOf, textOf } from './values.ts';

/** A call of the module `enclave` for one application. */
interface EnclaveCall {
  /** The package that holds `enclave::enclave`. */
  readonly enclavePackage: string;
  /** The type `T` of the application: see `applicationType`. */
  readonly application: string;
}

/** In bytes: larger than any real attestation document, and within the limit for a pure argument. */
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
    throw invalidValue('the name of the config must be a string that is not blank');
  }
  return tx.pure(textOf('the name of the config', name));
}

/** Creates and shares a config at version 0, which allows this image. */
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

/** Allows another image instead of the current one: every enclave registered so far becomes stale. */
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

/** Renames a config. */
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
 * Has the chain verify an attestation document, and registers the enclave that it attests. Call
 * `predictRegistration` of `sui-enclave/attestation` first: a document that doesn't verify also costs gas.
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

/** Destroys an enclave, stale or not. Only the holder of the capability can do that. */
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

/** Destroys a stale enclave. Anyone can do that. */
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

/** Publishes compiled modules, and transfers their upgrade capability to `owner`. */
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
  if (call.modules.length === 0) throw invalidValue('a package must have at least one module');
  const upgradeCap = tx.publish({ modules: [...call.modules], dependencies: [...call.dependencies] });
  tx.transferObjects([upgradeCap], addressOf('the owner', call.owner));
}
