/** Computes the digest of a package's code and dependencies. An upgrade is authorized for this digest. */
import { fromHex } from '@mysten/sui/utils';
import { blake2b } from '@noble/hashes/blake2.js';

/**
 * Computes a Blake2b-256 hash. Its input is a single sorted list of the digests of the modules and the ids of
 * the packages that they link to. Validators compute the same digest, and `sui move build
 * --dump-bytecode-as-base64` prints it.
 */
export function packageDigest(
  modules: readonly Uint8Array[],
  dependencies: readonly string[],
): Uint8Array<ArrayBuffer> {
  const digest = (bytes: Uint8Array) => new Uint8Array(blake2b(bytes, { dkLen: 32 }));
  const parts = [...modules.map(digest), ...dependencies.map((id) => fromHex(id))];
  return digest(Buffer.concat(parts.sort(Buffer.compare)));
}
