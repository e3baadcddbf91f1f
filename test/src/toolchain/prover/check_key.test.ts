import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { main } from '../../../../src/cli/main.ts';
import { KNOWN_KEYS } from '../../../../src/prover/keys/known.ts';
import { judgeKey } from '../../../../src/toolchain/prover/check_key.ts';
import { call } from '../../cli/run.ts';

const NAME = 'prover_check_key';

const folder = mkdtempSync(join(tmpdir(), 'check-key-'));
afterAll(() => rmSync(folder, { recursive: true }));

function check(content: string, ...args: string[]) {
  const file = join(folder, 'key.zkey');
  writeFileSync(file, content);
  return call(main, [NAME, file, ...args]);
}

// The published keys have 616 MB each. Only their digests are here.
test.each(KNOWN_KEYS)(
  'prover_check_key recognises the key of $network, and prints its setting',
  ({ name, network, bytes, blake2b }) => {
    const { exit, json, text } = judgeKey('a.zkey', { bytes, blake2b });
    expect(exit).toBeUndefined();
    expect(json).toEqual({ published: true, network, bytes, blake2b });
    expect(text).toContain(`a.zkey is the published key of ${network}`);
    expect(text).toContain(`VERIFYING_KEY=${name}`);
  },
);

test('a key of the right size with other content is not a published key', () => {
  const [{ bytes }] = KNOWN_KEYS as [(typeof KNOWN_KEYS)[0]];
  expect(judgeKey('a.zkey', { bytes, blake2b: '0'.repeat(128) })).toMatchObject({
    exit: 1,
    json: { published: false },
    text: expect.stringContaining('has the size of the key of mainnet and testnet, but other content'),
  });
});

test.each(['publ', ''])('%j is not a published key, but may be the beginning of one', async (content) => {
  const { status, stdout } = await check(content);
  expect(status).toBe(1);
  expect(stdout).toContain('continue it with curl -C -');
  const blake2b = createHash('blake2b512').update(content).digest('hex');
  expect(JSON.parse((await check(content, '--json')).stdout)).toEqual({
    published: false,
    network: null,
    bytes: content.length,
    blake2b,
  });
});

test('a missing file and a folder end prover_check_key with exit code 2', async () => {
  expect(await call(main, [NAME, join(folder, 'none')])).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^UNREADABLE_FILE: .*ENOENT/),
  });
  expect((await call(main, [NAME, folder])).status).toBe(2);
});
