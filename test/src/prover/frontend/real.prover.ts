/**
 * Tests front end and backend with the real engine and the small circuit's development key, from a token to a
 * signature.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { getZkLoginSignature } from '@mysten/sui/zklogin';
import { expect, onTestFinished, test } from 'vitest';
import { getProof } from '../../../../src/library/zklogin/index.ts';
import { startBackend } from '../../../../src/prover/backend/backend.ts';
import { readBackendConfig } from '../../../../src/prover/backend/config.ts';
import { buildInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { createLog } from '../../../../src/service/log.ts';
import {
  builtArtifacts,
  CIRCUIT_SOURCES,
  ENGINE,
  locateGenerator,
} from '../../../../src/toolchain/prover/artifacts.ts';
import { MAX_EPOCH } from '../support.ts';
import { fileWith, OTHER_KEY, requestFor, startTestFrontend } from './support.ts';

const artifacts = builtArtifacts('small');
const SNARKJS = `${CIRCUIT_SOURCES}/node_modules/snarkjs/build/cli.cjs`;

async function startRealBackend() {
  const env = {
    ZKEY: artifacts.zkey,
    WITNESS_BINARIES:
      locateGenerator(artifacts)[0] === process.execPath
        ? `${artifacts.circuit}/circuit_js`
        : artifacts.circuit,
    PROVER_ENGINE: ENGINE,
    ALLOW_INSECURE_DEV_KEY: '1',
    PORT: '0',
  };
  const backend = await startBackend({ config: readBackendConfig(env), log: createLog('silent') });
  onTestFinished(() => backend.close());
  await expect.poll(async () => (await fetch(`${backend.url}/healthz`)).status).toBe(200);
  return backend;
}

const SETTINGS = { CIRCUIT_SIZE: 'small', PROVER_TIMEOUT: '300' };

test('a wallet gets a proof that snarkjs verifies and @mysten/sui assembles', async () => {
  const { url } = await startRealBackend();
  const frontend = await startTestFrontend({
    ...SETTINGS,
    PROVER_URI: `${url}/input`,
    VERIFYING_KEY: artifacts.verifyingKey,
  });
  await expect.poll(frontend.printed).toMatch(/the backend has the key of this network/);
  const request = requestFor(await frontend.token()) as never;
  const proof = await getProof(`${frontend.url}/v1`, request, { timeoutMs: 300_000 });

  const { publicInput, addressSeed } = buildInput(request, frontend.issuer.keys[0] as never, PROFILES.small);
  const { a, b, c } = proof.proofPoints;
  const points = { pi_a: a, pi_b: b, pi_c: c, protocol: 'groth16', curve: 'bn128' };
  const files = [JSON.stringify([String(publicInput)]), JSON.stringify(points)].map(fileWith) as [
    string,
    string,
  ];
  const output = execFileSync(process.execPath, [
    SNARKJS,
    'groth16',
    'verify',
    artifacts.verifyingKey,
    ...files,
  ]);
  expect(output.toString()).toContain('OK!');
  const { signature } = await new Ed25519Keypair().signPersonalMessage(new Uint8Array(1));
  const inputs = { ...proof, addressSeed: String(addressSeed) };
  expect(getZkLoginSignature({ inputs, maxEpoch: MAX_EPOCH, userSignature: signature })).toMatch(/^BQ/);
});

test('a wallet gets its proof even if the engine hangs during it, because the engine is replaced', async () => {
  const { url, enginePid } = await startRealBackend();
  const pid = enginePid() as number;
  const frontend = await startTestFrontend({
    ...SETTINGS,
    ANSWER_SECONDS: '300',
    PROVER_URI: `${url}/input`,
    VERIFYING_KEY: artifacts.verifyingKey,
  });
  const proofAnswer = frontend.ask();
  const health = async () => ((await (await fetch(`${url}/healthz`)).json()) as { status: string }).status;
  await expect.poll(health, { interval: 5 }).toBe('proving');
  process.kill(pid, 'SIGSTOP');
  expect((await proofAnswer).status).toBe(200);
  expect(enginePid()).not.toBe(pid);
});

test('callers who leave the front end do not make the engine load its key again', async () => {
  const { url, enginePid } = await startRealBackend();
  const pid = enginePid();
  const frontend = await startTestFrontend({
    ...SETTINGS,
    USER_REQUESTS_PER_MINUTE: '100',
    PROVER_URI: `${url}/input`,
    VERIFYING_KEY: artifacts.verifyingKey,
  });
  const jwt = await frontend.token();
  for (let caller = 0; caller < 12; caller++) {
    const controller = new AbortController();
    const request = requestFor(jwt, { salt: String(caller) });
    const abandoned = frontend.post(request, { signal: controller.signal }).catch(() => 'left');
    await sleep(70 * caller);
    controller.abort();
    await abandoned;
  }
  expect((await frontend.ask()).status).toBe(200);
  expect(enginePid()).toBe(pid);
});

test('a proof that the backend made with another key is never returned', async () => {
  const { url } = await startRealBackend();
  const frontend = await startTestFrontend({
    ...SETTINGS,
    PROVER_URI: `${url}/input`,
    VERIFYING_KEY: fileWith(JSON.stringify(OTHER_KEY.vkey)),
  });
  const { status, body } = await frontend.ask();
  expect([status, body['code']]).toEqual([502, 'PROVER_BACKEND_ANSWER']);
});
