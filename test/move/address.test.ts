/**
 * Checks that an address of an Enclave that is computed without the chain is the same as in the Move VM and
 * in `@mysten/sui`.
 */
import { bcs } from '@mysten/sui/bcs';
import { deriveObjectID } from '@mysten/sui/utils';
import { blake2b } from '@noble/hashes/blake2.js';
import { expect, test } from 'vitest';
import { chooseFramework, testPackage } from '../../src/toolchain/move/packages.ts';
import { withoutOwnTests } from './without_own_tests.ts';

const KEY_TYPE = '0x0::enclave::EnclaveKey';
const EnclaveKey = bcs.struct('EnclaveKey', { config_version: bcs.u64(), pk: bcs.byteVector() });
const PUBLIC_KEY = Buffer.alloc(32, 0x11);

function hash(...parts: Uint8Array[]): string {
  return `0x${Buffer.from(blake2b(Buffer.concat(parts), { dkLen: 32 })).toString('hex')}`;
}

/**
 * Computes an address as `sui::derived_object::derive_address` does, which hashes the key's length as a
 * native `usize`: 8 bytes on validators, and 4 in the WebAssembly VM of these tests.
 */
function derive(parent: string, key: Uint8Array, lengthBytes: 4 | 8): string {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(key.length);
  const type = bcs.TypeTag.serialize(`0x2::derived_object::DerivedObjectKey<${KEY_TYPE}>`).toBytes();
  return hash(Uint8Array.of(0xf0), bcs.Address.serialize(parent).toBytes(), length, key, type);
}

function encodeKey(version: bigint): Uint8Array {
  return EnclaveKey.serialize({ config_version: version, pk: PUBLIC_KEY }).toBytes();
}

test('config, version and public key determine the address of an Enclave', async () => {
  const transaction = 7n;
  const digest = Buffer.alloc(32);
  digest.writeBigUInt64LE(transaction);
  // The config is the second object that the transaction creates.
  const config = hash(Uint8Array.of(0xf1), digest, bcs.u64().serialize(1n).toBytes());

  const run = await testPackage('enclave', chooseFramework(process.env), {
    extra: {
      ...withoutOwnTests('enclave'),
      'tests/address.move': `#[test_only]
module enclave::address;
use enclave::enclave;
public struct T {}
#[test]
fun as_computed() {
    let mut ctx = tx_context::new_from_hint(@0xA, ${transaction}, 0, 0, 0);
    let cap = enclave::new_cap_for_testing<T>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    assert!(object::id_address(&config) == @${config});
    let pk = x"${PUBLIC_KEY.toString('hex')}";
    let first = config.new_enclave_for_testing(&cap, pk);
    assert!(object::id_address(&first) == @${derive(config, encodeKey(0n), 4)});
    let (pcr0, pcr1, pcr2) = (*config.pcr0(), *config.pcr1(), *config.pcr2());
    config.update_pcrs(&cap, pcr0, pcr1, pcr2);
    let second = config.new_enclave_for_testing(&cap, pk);
    assert!(object::id_address(&second) == @${derive(config, encodeKey(1n), 4)});
    first.destroy_enclave_for_testing();
    second.destroy_enclave_for_testing();
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}
`,
    },
  });

  expect(run.output).toContain('[ PASS    ] enclave::address::as_computed');
  expect(deriveObjectID(config, KEY_TYPE, encodeKey(1n))).toBe(derive(config, encodeKey(1n), 8));
});
