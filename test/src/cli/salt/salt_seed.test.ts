import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { main } from '../../../../src/cli/salt/salt_seed.ts';
import { call, spawnScript } from '../run.ts';

const vectors = JSON.parse(readFileSync(new URL('../../../vectors/salt.json', import.meta.url), 'utf8'));
const [FIRST, SECOND]: { seed: string; fingerprint: string }[] = vectors.fingerprints;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sui-enclave-seed-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const at = (name: string) => join(folder, name);
const content = (name: string) => readFileSync(at(name), 'utf8');

const run = (...args: string[]) => call(main, args);

/** Writes a file with two seeds, and splits it. @returns the paths of its five shares */
async function splitTwo(): Promise<string[]> {
  writeFileSync(at('seed'), `${FIRST?.seed}\n${SECOND?.seed}\n`);
  expect((await run('split', at('seed'), at('shares'), '--shares', '5', '--threshold', '3')).status).toBe(0);
  return readdirSync(at('shares')).map((name) => at(`shares/${name}`));
}

describe('generate', () => {
  test('writes 64 hex characters that only the owner reads, and prints the fingerprint alone', async () => {
    const { status, stdout } = await run('generate', at('seed'));
    expect(status).toBe(0);
    expect(content('seed')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(statSync(at('seed')).mode & 0o777).toBe(0o600);
    expect(stdout).toContain((await run('fingerprint', at('seed'))).stdout.trim());
    expect(stdout).not.toContain(content('seed').trim());
  });

  test('makes another seed each time, and never overwrites a file', async () => {
    await run('generate', at('seed'));
    await run('generate', at('other'));
    const before = content('seed');
    expect(content('other')).not.toBe(before);
    expect(await run('generate', at('seed'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^FILE: .*seed exists already/),
    });
    expect(content('seed')).toBe(before);
  });
});

describe('fingerprint', () => {
  test('has the format of SALT_SEED_FINGERPRINTS', async () => {
    writeFileSync(at('seed'), `${FIRST?.seed}\n${SECOND?.seed}\n`);
    expect((await run('fingerprint', at('seed'))).stdout).toBe(
      `${FIRST?.fingerprint},${SECOND?.fingerprint}\n`,
    );
  });

  test('refuses a text that is not a seed', async () => {
    writeFileSync(at('seed'), 'hunter2\n');
    const { status, stderr } = await run('fingerprint', at('seed'));
    expect(status).toBe(1);
    expect(stderr).toMatch(/64 hex characters/);
    expect(stderr).not.toMatch(/hunter2/);
  });
});

test('salt_seed runs as a process', async () => {
  const { status, stdout, stderr } = await spawnScript('salt/salt_seed.ts', ['generate', at('seed')]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toBe(`wrote ${at('seed')}\nfingerprint: ${(await run('fingerprint', at('seed'))).stdout}`);
  expect(statSync(at('seed')).mode & 0o777).toBe(0o600);
});

describe('split and combine', () => {
  test('any three of five shares restore the file', async () => {
    const files = await splitTwo();
    expect(files).toHaveLength(5);
    let n = 0;
    for (const [a, b, c] of [
      [0, 1, 2],
      [0, 2, 4],
      [4, 3, 1],
      [2, 3, 4],
    ] as [number, number, number][]) {
      const name = `back-${n++}`;
      const { status, stdout } = await run(
        'combine',
        at(name),
        ...[a, b, c].map((index) => files[index] as string),
      );
      expect(status).toBe(0);
      expect(stdout).toContain(`${FIRST?.fingerprint},${SECOND?.fingerprint}`);
      expect(content(name)).toBe(content('seed'));
      expect(statSync(at(name)).mode & 0o777).toBe(0o600);
    }
  });

  test('only its owner can read a share, and no share contains the seed', async () => {
    const files = await splitTwo();
    for (const file of files) {
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readFileSync(file, 'utf8')).not.toContain(FIRST?.seed);
    }
  });

  test('fewer shares are not enough', async () => {
    const files = await splitTwo();
    const { status, stderr } = await run('combine', at('back'), ...files.slice(0, 2));
    expect(status).toBe(1);
    expect(stderr).toMatch(/^SHARES: 2 shares can't restore the seed: 3 are needed/);
    expect(readdirSync(folder)).not.toContain('back');
  });

  test('a share that is given twice is refused', async () => {
    const [a = '', b = ''] = await splitTwo();
    expect(await run('combine', at('back'), a, b, a)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SHARES: one share is given twice/),
    });
  });

  test('shares of different splits are refused', async () => {
    const files = await splitTwo();
    await run('generate', at('other'));
    await run('split', at('other'), at('others'), '--shares', '3', '--threshold', '3');
    const mixed = [...files.slice(0, 2), at('others/share-3.txt')];
    expect(await run('combine', at('back'), ...mixed)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SHARES: .*not of one split/),
    });
  });

  test('a damaged share is noticed, and nothing is written', async () => {
    const [a = '', b = '', c = ''] = await splitTwo();
    const text = readFileSync(c, 'utf8');
    const damagedText = text.replace(/share=(.)/, (_, digit) => `share=${digit === '0' ? '1' : '0'}`);
    writeFileSync(c, damagedText);
    expect(await run('combine', at('back'), a, b, c)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SHARES: the shares do not restore the seed /),
    });
    writeFileSync(c, text.slice(0, -5));
    expect(await run('combine', at('back'), a, b, c)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SHARES: .* is not a share, or is damaged/),
    });
    expect(readdirSync(folder)).not.toContain('back');
  });
});

test.each([
  [[]],
  [['generate']],
  [['generate', 'a', 'b']],
  [['generate', 'a', '--shares', '3']],
  [['split', 'a', 'b']],
  [['split', 'a', 'b', '--shares', '3', '--threshold', '1']],
  [['split', 'a', 'b', '--shares', '3', '--threshold', '4']],
  [['split', 'a', 'b', '--shares', '256', '--threshold', '2']],
  [['combine', 'a', 'b']],
  [['frobnicate', 'a']],
  [['generate', 'a', '--seed', 'abc']],
])('the command line %j is refused', async (args) => {
  expect(await run(...args)).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^USAGE: .+\. See sui-enclave salt_seed --help\n$/),
  });
});
