/** Copies bytes to sign into memory that the caller can't change. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import type { Transaction } from '@mysten/sui/transactions';
import { type BuildOptions, buildTransaction } from '../sui/build.ts';
import { ZkLoginError } from './errors.ts';

/**
 * Copies bytes of a caller. The constructor reads the bytes once, and calls none of their methods, which the
 * bytes' class may have replaced.
 *
 * @returns the copy; null for anything but a Uint8Array, and for a Uint8Array whose buffer was transferred or
 *   is too short
 */
export function tryCopy(value: unknown): Uint8Array<ArrayBuffer> | null {
  if (!(value instanceof Uint8Array)) return null;
  try {
    return new Uint8Array(value);
  } catch {
    return null;
  }
}

/** Copies bytes as `tryCopy` does. @throws ZkLoginError: ZKLOGIN_OPTION */
export function copyBytes(name: string, value: unknown): Uint8Array<ArrayBuffer> {
  const copy = tryCopy(value);
  if (copy === null) throw new ZkLoginError('ZKLOGIN_OPTION', `the ${name} must be a Uint8Array`);
  return copy;
}

/**
 * Returns the BCS of the transaction's data, or of its kind alone. The bytes are a copy, since the
 * transaction may be of a caller's own class.
 *
 * @throws SuiError; ZkLoginError: ZKLOGIN_OPTION
 */
export async function buildBytes(
  transaction: Transaction,
  client: ClientWithCoreApi,
  options: BuildOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  return copyBytes('built transaction', await buildTransaction(client, transaction, options));
}
