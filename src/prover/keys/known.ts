/** Lists zkLogin's two published proving keys by their hashes, with their verifying keys. */
import { readFileSync } from 'node:fs';
import { readVerifyingKey, type VerifyingKey } from '../verify.ts';

export type KeyName = 'main' | 'test';

export interface KnownKey {
  readonly name: KeyName;
  /** Sui networks whose validators accept proofs made with this key. */
  readonly network: 'mainnet and testnet' | 'devnet';
  /** Size of the `.zkey` in bytes. */
  readonly bytes: number;
  /** BLAKE2b-512 (RFC 7693) of the `.zkey`, in hex. */
  readonly blake2b: string;
}

export const KNOWN_KEYS: readonly KnownKey[] = [
  {
    name: 'main',
    network: 'mainnet and testnet',
    bytes: 616_454_892,
    blake2b:
      '060beb961802568ac9ac7f14de0fbcd55e373e8f5ec7cc32189e26fb65700aa4e36f5604f868022c765e634d14ea1cd58bd4d79cef8f3cf9693510696bcbcbce',
  },
  {
    name: 'test',
    network: 'devnet',
    bytes: 616_410_988,
    blake2b:
      '686e2f5fd969897b1c034d7654799ee2c3952489814e4eaaf3d7e1bb539841047ae8ee5fdcdaca5f4ddd76abb5a8e8eb77b44b693a2ba9d4be57e94292b26ce2',
  },
];

/** Reads a published verifying key, whose file is beside this module. */
export function publishedVerifyingKey(name: KeyName): VerifyingKey {
  return readVerifyingKey(JSON.parse(readFileSync(new URL(`${name}.vkey.json`, import.meta.url), 'utf8')));
}
