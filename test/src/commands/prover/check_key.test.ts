import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { main } from '../../../../src/commands/main.ts';
import { call } from '../run.ts';

const NAME = 'prover_check_key';

/** The published keys have 616 MB: here one of 9 bytes stands for that of devnet. */
vi.mock('sui-enclave-prover/keys/known', async (original) => {
  const { KNOWN_KEYS } = await original<typeof import('../../../../src/prover/keys/known.ts')>();
  const blake2b = createHash('blake2b512').update('published').digest('hex');
  return { KNOWN_KEYS: KNOWN_KEYS.map((key) => (key.name === 'test' ? { ...key, bytes: 9, blake2b } : key)) };
});

const folder = mkdtempSync(join(tmpdir(), 'check-key-'));
afterAll(() => rmSync(folder, { recursive: true }));

function check(content: string, ...args: string[]) {
  const file = join(folder, 'key.zkey');
  writeFileSync(file, content);
  return call(main, [NAME, file, ...args]);
}

test('names the network of a published key, and the setting', async () => {
  const { status, stdout } = await check('published');
  expect(status).toBe(0);
  expect(stdout).toContain('is the published key of devnet');
  expect(stdout).toContain('VERIFYING_KEY=test');
  expect(JSON.parse((await check('published', '--json')).stdout)).toEqual({
    published: true,
    network: 'devnet',
    bytes: 9,
    blake2b: createHash('blake2b512').update('published').digest('hex'),
  });
});

test.each([
  ['publishes', 'has the size of that of devnet, but another content'],
  ['publ', 'continue it with curl -C -'],
  ['', 'continue it with curl -C -'],
])('%j is not one', async (content, message) => {
  const { status, stdout } = await check(content);
  expect(status).toBe(1);
  expect(stdout).toContain(message);
  expect(stdout).toContain(createHash('blake2b512').update(content).digest('hex'));
});

test('a file that is not there is not tried', async () => {
  expect(await call(main, [NAME, join(folder, 'none')])).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^UNREADABLE_FILE: .*ENOENT/),
  });
  expect((await call(main, [NAME, folder])).status).toBe(2);
});
