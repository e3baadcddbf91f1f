/** Reads `VERIFYING_KEY`, which gives the key that verifies the proofs, and the network that accepts them. */

import { readFileSync } from 'node:fs';
import { bn254 } from '@noble/curves/bn254.js';
import { ConfigError } from 'sui-enclave/errors';
import { type KeyName, KNOWN_KEYS, publishedVerifyingKey } from '../keys/known.ts';
import { readVerifyingKey, type VerifyingKey } from '../verify.ts';

/** Name of a network, as a backend gives it in `/healthz`. */
export type NetworkName = (typeof KNOWN_KEYS)[number]['network'] | 'development';

export interface NetworkKey {
  readonly network: NetworkName;
  readonly verifyingKey: VerifyingKey;
}

export interface Keys {
  /** Key of this service. */
  readonly own: NetworkKey;
  /**
   * Published keys other than `own`. If a proof is valid for one of them, it was made with another network's
   * key.
   */
  readonly others: readonly NetworkKey[];
}

/**
 * Reads the service's key, and the published keys of other networks.
 *
 * @param setting `main`, `test`, or the path of a `vkey.json` from snarkjs
 * @param allowDevelopment whether a key that is not published is allowed
 * @throws ConfigError
 */
export function readKeys(setting: string, allowDevelopment: boolean): Keys {
  const published = publishedKeys();
  const networkKey = published.find(({ name }) => name === setting) ?? readKeyFile(setting, published);
  if (networkKey.network === 'development' && !allowDevelopment) {
    throw new ConfigError(
      'VERIFYING_KEY is not a published key, so anyone may be able to forge proofs for it: set it to main or test, or set ALLOW_INSECURE_DEV_KEY=1 for development',
    );
  }
  return { own: networkKey, others: published.filter(({ network }) => network !== networkKey.network) };
}

type PublishedKey = NetworkKey & { readonly name: KeyName };
let cachedKeys: readonly PublishedKey[] | undefined;

/** Reads the published keys once, since each needs a pairing. */
function publishedKeys(): readonly PublishedKey[] {
  cachedKeys ??= KNOWN_KEYS.map(({ name, network }) => ({
    name,
    network,
    verifyingKey: publishedVerifyingKey(name),
  }));
  return cachedKeys;
}

function readKeyFile(path: string, published: readonly NetworkKey[]): NetworkKey {
  const verifyingKey = readKey(path);
  const publishedKey = published.find((key) => isSameKey(key.verifyingKey, verifyingKey));
  return publishedKey ?? { network: 'development', verifyingKey };
}

function readKey(path: string): VerifyingKey {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(
      `VERIFYING_KEY must be main, test or the path of a vkey.json: the file can't be read (${(error as NodeJS.ErrnoException).code})`,
    );
  }
  try {
    const key = readVerifyingKey(JSON.parse(text));
    if (key.inputs.length === 2) return key;
  } catch {
    // The error below reports this failure.
  }
  throw new ConfigError(
    'VERIFYING_KEY is not a vkey.json of snarkjs for groth16 on bn128 with one public input',
  );
}

function isSameKey(left: VerifyingKey, right: VerifyingKey): boolean {
  return (
    bn254.fields.Fp12.eql(left.alphaBeta, right.alphaBeta) &&
    left.gamma.equals(right.gamma) &&
    left.delta.equals(right.delta) &&
    left.inputs.every((point, index) => right.inputs[index]?.equals(point))
  );
}
