/** `sui-enclave prove` without a circuit: `--input-only`, and refused requests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { main } from '../../../../src/toolchain/prover/prove.ts';
import { call } from '../../cli/run.ts';
import { REAL_TOKENS } from '../../prover/support.ts';

const folder = mkdtempSync(join(tmpdir(), 'prove-'));
afterAll(() => rmSync(folder, { recursive: true }));

const [{ request, key }] = REAL_TOKENS as [(typeof REAL_TOKENS)[0]];
const file = (name: string, content: unknown) => {
  writeFileSync(join(folder, name), JSON.stringify(content));
  return join(folder, name);
};
const json = { ...request, extendedEphemeralPublicKey: String(request.extendedEphemeralPublicKey) };
const GOOD = file('request.json', json);
const KEYS = file('keys.json', { keys: [key] });
const ISSUED = String(1_715_786_862_000);

const prove = (...args: string[]) => call(main, args);

test('prove prints the input of the production circuit, and a warning that it is private', async () => {
  const { status, stdout, stderr } = await prove(GOOD, '--jwks', KEYS, '--at', ISSUED, '--input-only');
  expect(stderr).toBe('The output is PRIVATE: keep it out of logs and tickets.\n');
  expect(JSON.parse(stdout)).toEqual(buildInput(request, key, PROFILES.full).circuit);
  expect(status).toBe(0);
});

test.each<[string, string[], string, number]>([
  ['an expired token', [GOOD, '--jwks', KEYS, '--at', '2026-01-01T00:00:00Z'], 'PROVER_TOKEN_REFUSED', 1],
  [
    'a token that is too large for the small size',
    [GOOD, '--jwks', KEYS, '--at', ISSUED, '--size', 'small'],
    'PROVER_PROFILE',
    1,
  ],
  ['an invalid request', [KEYS, '--jwks', KEYS, '--at', ISSUED], 'PROVER_REQUEST', 1],
  ['a missing file', ['/nonexistent', '--jwks', KEYS], 'CONFIG', 1],
  ['no keys', [GOOD], 'USAGE', 2],
  ['no request', ['--jwks', KEYS], 'USAGE', 2],
  ['two requests', [GOOD, GOOD, '--jwks', KEYS], 'USAGE', 2],
  ['an invalid time', [GOOD, '--jwks', KEYS, '--at', 'yesterday'], 'USAGE', 2],
  ['a time without a zone', [GOOD, '--jwks', KEYS, '--at', '2024-05-15T16:00:00'], 'USAGE', 2],
  ['another size', [GOOD, '--jwks', KEYS, '--size', 'huge'], 'USAGE', 2],
])('prove refuses %s, and prints nothing private', async (_, args, code, exit) => {
  const { status, stdout, stderr } = await prove(...args);
  expect(stderr).toMatch(new RegExp(`^${code}: `));
  expect(stderr).not.toContain(request.jwt.slice(0, 20));
  expect(stdout).toBe('');
  expect(status).toBe(exit);
});
