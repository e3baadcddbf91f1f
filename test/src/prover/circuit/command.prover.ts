/** Runs `sui-enclave prove` from an operator's files to a proof. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { readVerifyingKey, verifyProof } from '../../../../src/prover/verify.ts';
import { ROOT } from '../../../../src/toolchain/prover/artifacts.ts';
import { CLAIMS, EPHEMERAL_KEY, OUR_KEY, requestFor, signToken } from '../support.ts';
import { artifacts } from './generator.ts';

const folder = mkdtempSync(join(tmpdir(), 'prover-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('prove proves a request, and answers in the format of a proving service', () => {
  const request = requestFor(signToken(JSON.stringify(CLAIMS)));
  const [file, keys] = [join(folder, 'request.json'), join(folder, 'keys.json')];
  writeFileSync(file, JSON.stringify({ ...request, extendedEphemeralPublicKey: String(EPHEMERAL_KEY) }));
  writeFileSync(keys, JSON.stringify({ keys: [OUR_KEY] }));
  const time = String(CLAIMS.iat * 1000);
  const args = [
    join(ROOT, 'src/toolchain/prover/prove.ts'),
    file,
    '--jwks',
    keys,
    '--at',
    time,
    '--size',
    'small',
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stderr).toMatch(/^The output is PRIVATE.*\nwitness [\d.]+ s, proof [\d.]+ s, verified\n$/);
  expect(status).toBe(0);
  const { proofPoints, issBase64Details, headerBase64, addressSeed } = JSON.parse(stdout);
  const built = buildInput(request, OUR_KEY, PROFILES.small);
  expect({ issBase64Details, headerBase64, addressSeed }).toEqual({
    issBase64Details: built.issBase64Details,
    headerBase64: built.headerBase64,
    addressSeed: String(built.addressSeed),
  });
  const key = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
  expect(verifyProof(key, proofPoints, [built.publicInput])).toBe(true);
});
