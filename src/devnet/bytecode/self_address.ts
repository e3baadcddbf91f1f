/**
 * Finds the address of a module's own package. Compilers write 0x0 instead of it. Publishing replaces that
 * by the package's id, and changes nothing else.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { getEntry, TABLE, Tables } from './tables.ts';

const ADDRESS_BYTES = 32;

/**
 * Removes the package's address from a module.
 *
 * @returns that address, and the module with zeros instead of the address
 * @throws RangeError, if the bytes are not a module in a supported version of the format
 */
export function withoutSelfAddress(bytes: Uint8Array): {
  readonly address: string;
  readonly module: Uint8Array;
} {
  const tables = new Tables(bytes);
  const addresses = tables.read(TABLE.addresses, (reader) => {
    reader.take(ADDRESS_BYTES);
    return reader.position - ADDRESS_BYTES;
  });
  const modules = tables.read(TABLE.modules, (reader) => {
    const address = reader.index();
    reader.index();
    return address;
  });
  const from = getEntry(addresses, getEntry(modules, tables.self));
  const module = Uint8Array.from(bytes);
  const address = `0x${bytesToHex(module.subarray(from, from + ADDRESS_BYTES))}`;
  module.fill(0, from, from + ADDRESS_BYTES);
  return { address, module };
}
