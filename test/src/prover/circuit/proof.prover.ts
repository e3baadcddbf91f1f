/**
 * Tests proofs under the development key: snarkjs accepts the engine's proofs, our verifier accepts the
 * proofs of snarkjs, and a wrong witness gives no valid proof.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { type Groth16Proof, readVerifyingKey, verifyProof } from '../../../../src/prover/verify.ts';
import { generateWitness } from '../../../../src/prover/witness.ts';
import { CIRCUIT_SOURCES, ENGINE, locateGenerator } from '../../../../src/toolchain/prover/artifacts.ts';
import { CLAIMS, OUR_KEY, requestFor, signToken } from '../support.ts';
import { artifacts } from './generator.ts';

const SNARKJS = join(CIRCUIT_SOURCES, 'node_modules/snarkjs/build/cli.cjs');
const folder = mkdtempSync(join(tmpdir(), 'prover-test-'));
const pathOf = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

const { circuit, publicInput } = buildInput(
  requestFor(signToken(JSON.stringify(CLAIMS))),
  OUR_KEY,
  PROFILES.small,
);
const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
const key = readVerifyingKey(readJson(artifacts.verifyingKey));
let witness: Buffer;

beforeAll(async () => {
  witness = await generateWitness(locateGenerator(artifacts), circuit);
  writeFileSync(pathOf('wtns'), witness);
});

function readProof(file: string): Groth16Proof {
  const { pi_a, pi_b, pi_c } = readJson(file);
  return { a: pi_a, b: pi_b, c: pi_c };
}

const prove = (wtns: string, name: string) =>
  spawnSync(
    ENGINE,
    [
      'prove',
      '--zkey',
      artifacts.zkey,
      '--wtns',
      wtns,
      '--proof',
      pathOf(name),
      '--public',
      pathOf(`${name}.public`),
    ],
    { encoding: 'utf8' },
  );
const snarkjs = (...args: string[]) =>
  execFileSync(process.execPath, [SNARKJS, ...args], { encoding: 'utf8', maxBuffer: 2 ** 24 });

describe('a proof of the engine', () => {
  beforeAll(() => {
    expect(prove(pathOf('wtns'), 'ours').status).toBe(0);
  });

  test('is valid only for the public input that buildInput computes', () => {
    expect(readJson(pathOf('ours.public'))).toEqual([String(publicInput)]);
    expect(verifyProof(key, readProof(pathOf('ours')), [publicInput])).toBe(true);
    expect(verifyProof(key, readProof(pathOf('ours')), [publicInput + 1n])).toBe(false);
  });

  test('is valid for snarkjs', () => {
    expect(
      snarkjs('groth16', 'verify', artifacts.verifyingKey, pathOf('ours.public'), pathOf('ours')),
    ).toContain('OK!');
  });
});

test('a proof by snarkjs is valid for our verifier', () => {
  snarkjs('groth16', 'prove', artifacts.zkey, pathOf('wtns'), pathOf('theirs'), pathOf('theirs.public'));
  expect(verifyProof(key, readProof(pathOf('theirs')), [publicInput])).toBe(true);
});

test('a witness with one wrong wire never gives a valid proof', () => {
  const wires = (witness.length - 76) / 32;
  for (const [index, wire] of [
    1,
    2,
    700,
    Math.floor(wires / 3),
    Math.floor(wires / 2),
    wires - 1,
  ].entries()) {
    const changedWitness = Buffer.from(witness);
    // The header has 76 bytes. Each wire has 32 bytes, the least significant first.
    changedWitness.writeUInt8((changedWitness[76 + 32 * wire] as number) ^ 1, 76 + 32 * wire);
    writeFileSync(pathOf('wrong'), changedWitness);
    const name = `wrong-${index}`;
    if (prove(pathOf('wrong'), name).status !== 0) continue;
    const [claimed] = readJson(pathOf(`${name}.public`));
    expect(verifyProof(key, readProof(pathOf(name)), [BigInt(claimed)]), `wire ${wire}`).toBe(false);
  }
});
