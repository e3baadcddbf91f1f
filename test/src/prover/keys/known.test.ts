/** Tests the published keys with proofs of real logins that were made with them. */
import { describe, expect, test } from 'vitest';
import { type KeyName, KNOWN_KEYS, publishedVerifyingKey } from '../../../../src/prover/keys/known.ts';
import { type Groth16Proof, verifyProof } from '../../../../src/prover/verify.ts';
import { vector } from '../support.ts';

const [google, devnet] = vector('zklogin-proofs').map(
  (vector: { partialInputs: { proofPoints: Groth16Proof }; publicInput: string }) => ({
    proof: vector.partialInputs.proofPoints,
    publicInput: BigInt(vector.publicInput),
  }),
);

describe('the published verifying key', () => {
  test.each<[KeyName, typeof google]>([
    ['main', google],
    ['test', devnet],
  ])('%s accepts the published proof of its network, and refuses the other proof', (name, published) => {
    const key = publishedVerifyingKey(name);
    const otherPublished = published === google ? devnet : google;
    expect(verifyProof(key, published.proof, [published.publicInput])).toBe(true);
    expect(verifyProof(key, otherPublished.proof, [otherPublished.publicInput])).toBe(false);
  });
});

test('each proving key has its own network, size and hash', () => {
  expect(KNOWN_KEYS.map(({ name, network }) => [name, network])).toEqual([
    ['main', 'mainnet and testnet'],
    ['test', 'devnet'],
  ]);
  for (const { blake2b, bytes } of KNOWN_KEYS) {
    expect(blake2b).toMatch(/^[0-9a-f]{128}$/);
    expect(bytes).toBeGreaterThan(616_000_000);
  }
  expect(new Set(KNOWN_KEYS.map(({ blake2b }) => blake2b)).size).toBe(2);
});
