/**
 * Tests the real backends behind HAProxy, with the small circuit and its development key, which `make
 * prover-dev SIZE=small` creates.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { buildInput } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { readVerifyingKey, verifyProof } from '../../../src/prover/verify.ts';
import { ENGINE, locateArtifacts, locateGenerator } from '../../../src/toolchain/prover/artifacts.ts';
import { OUR_KEY, requestWith } from '../../src/prover/support.ts';
import { HAPROXY, isInstalled, REAL_BACKEND, Site, stop, until } from './setup.ts';

const artifacts = locateArtifacts('small');
const missingFiles = [HAPROXY, REAL_BACKEND, ENGINE, artifacts.zkey].filter((path) => !existsSync(path));
const NAME =
  isInstalled && missingFiles.length === 0 ? 'backends' : `backends (skipped: no ${missingFiles.join(', ')})`;
const REQUESTS = 8;

function createEnvironment() {
  const isNative = locateGenerator(artifacts)[0] !== process.execPath;
  return {
    ZKEY: artifacts.zkey,
    WITNESS_BINARIES: isNative ? artifacts.circuit : join(artifacts.circuit, 'circuit_js'),
    PROVER_ENGINE: ENGINE,
    ALLOW_INSECURE_DEV_KEY: '1',
  };
}

describe.skipIf(missingFiles.length > 0)(NAME, () => {
  let site: Site;
  afterEach(() => site?.stop());

  test('callers who leave do not make a backend load its key again, and the next caller gets a proof', async () => {
    site = await Site.start({ QUEUE_LENGTH: '20', QUEUE_SECONDS: '300', PROOF_SECONDS: '120' });
    const backend = site.addReal('127.0.0.1', createEnvironment());
    await until('a backend listens', () => backend.output().includes('"listening"'));
    await site.ready(1);
    const body = JSON.stringify(buildInput(requestWith({}), OUR_KEY, PROFILES.small).circuit);
    const countEndedProofs = () => backend.output().match(/whose caller has left/g)?.length ?? 0;
    for (let caller = 1; caller <= 5; caller++) {
      const leaver = new AbortController();
      const abandoned = site.post(body, leaver.signal).catch(() => 'left');
      const isProving = async () => (await (await site.get('/healthz')).text()).includes('"proving"');
      await until('the proof has begun', isProving);
      leaver.abort();
      expect(await abandoned).toBe('left');
      await until('the backend has ended the proof', () => countEndedProofs() === caller);
    }
    expect((await site.post(body)).status).toBe(200);
    expect(backend.output()).not.toContain('the engine ended');
  }, 600_000);

  test(`answer ${REQUESTS} simultaneous requests, each with its own proof, if one is killed and another added`, async () => {
    const env = createEnvironment();
    site = await Site.start({ QUEUE_LENGTH: '20', QUEUE_SECONDS: '300', PROOF_SECONDS: '120' });
    const killed = site.addReal('127.0.0.1', env);
    const survivor = site.addReal('127.0.0.2', env);
    for (const { output } of [killed, survivor]) {
      await until('a backend listens', () => output().includes('"listening"'));
    }
    await site.ready(2);

    const inputs = Array.from({ length: REQUESTS }, (_, salt) =>
      buildInput(requestWith({}, { salt: String(salt + 1) }), OUR_KEY, PROFILES.small),
    );
    const answers = Promise.all(inputs.map(async ({ circuit }) => site.post(JSON.stringify(circuit))));
    await until('the first proofs are there', () => /POST \/input 200/.test(site.log()));
    await stop(killed);
    site.addReal('127.0.0.3', env);

    const key = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
    for (const [index, response] of (await answers).entries()) {
      expect(response.status).toBe(200);
      const { pi_a: a = [], pi_b: b = [], pi_c: c = [] } = (await response.json()) as Record<string, never[]>;
      const { publicInput } = inputs[index] as (typeof inputs)[number];
      expect(verifyProof(key, { a, b, c }, [publicInput])).toBe(true);
    }
    // The killed backend had begun another proof, which another backend then made.
    expect(site.log()).toMatch(/POST \/input 200 .* retries=\+?[1-3]/);
    expect(site.log()).not.toMatch(/padded_unsigned_jwt|pi_a/);
  }, 600_000);
});
