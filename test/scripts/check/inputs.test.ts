import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { main } from '../../../scripts/check/inputs.ts';
import { buildInput } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import { call } from '../../src/cli/run.ts';
import { REAL_TOKENS } from '../../src/prover/support.ts';

test('npm run inputs writes the input of each token', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inputs-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'inputs.json');
  expect((await call(main, ['--out', file])).status).toBe(0);
  const inputs = JSON.parse(readFileSync(file, 'utf8'));
  expect(inputs).toEqual(
    REAL_TOKENS.map(({ provider, request, key }) => {
      const { circuit, publicInput, addressSeed } = buildInput(request, key, PROFILES.full);
      return expect.objectContaining({
        provider,
        modulus: key.n,
        input: circuit,
        publicInput: String(publicInput),
        addressSeed: String(addressSeed),
      });
    }),
  );
});
