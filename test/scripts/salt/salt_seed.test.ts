import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../../scripts/salt/salt_seed.ts', import.meta.url));
const vectors = JSON.parse(readFileSync(new URL('../../vectors/salt.json', import.meta.url), 'utf8'));
const [ONE, TWO]: { seed: string; fingerprint: string }[] = vectors.fingerprints;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sui-enclave-seed-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const at = (name: string) => join(folder, name);
const content = (name: string) => readFileSync(at(name), 'utf8');

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** A file of both seeds, and its five shares. */
function splitTwo(): string[] {
  writeFileSync(at('seed'), `${ONE?.seed}\n${TWO?.seed}\n`);
  expect(run('split', at('seed'), at('shares'), '--shares', '5', '--threshold', '3').status).toBe(0);
  return readdirSync(at('shares')).map((name) => at(`shares/${name}`));
}

describe('generate', () => {
  test('writes 64 hex characters that only the owner reads, and prints the fingerprint alone', () => {
    const { status, stdout } = run('generate', at('seed'));
    expect(status).toBe(0);
    expect(content('seed')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(statSync(at('seed')).mode & 0o777).toBe(0o600);
    expect(stdout).toContain(run('fingerprint', at('seed')).stdout.trim());
    expect(stdout).not.toContain(content('seed').trim());
  });

  test('makes another seed each time, and never writes over one', () => {
    run('generate', at('seed'));
    run('generate', at('other'));
    const before = content('seed');
    expect(content('other')).not.toBe(before);
    expect(run('generate', at('seed'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/there already/),
    });
    expect(content('seed')).toBe(before);
  });
});

describe('fingerprint', () => {
  test('is what SALT_SEED_FINGERPRINTS takes', () => {
    writeFileSync(at('seed'), `${ONE?.seed}\n${TWO?.seed}\n`);
    expect(run('fingerprint', at('seed')).stdout).toBe(`${ONE?.fingerprint},${TWO?.fingerprint}\n`);
  });

  test('of what is no seed is none', () => {
    writeFileSync(at('seed'), 'hunter2\n');
    const { status, stderr } = run('fingerprint', at('seed'));
    expect(status).toBe(1);
    expect(stderr).toMatch(/64 hex characters/);
    expect(stderr).not.toMatch(/hunter2/);
  });
});

describe('split and combine', () => {
  test('any three of five shares bring the file back', () => {
    const files = splitTwo();
    expect(files).toHaveLength(5);
    let n = 0;
    for (const [a, b, c] of [
      [0, 1, 2],
      [0, 2, 4],
      [4, 3, 1],
      [2, 3, 4],
    ] as [number, number, number][]) {
      const name = `back-${n++}`;
      const { status, stdout } = run(
        'combine',
        at(name),
        ...[a, b, c].map((index) => files[index] as string),
      );
      expect(status).toBe(0);
      expect(stdout).toContain(`${ONE?.fingerprint},${TWO?.fingerprint}`);
      expect(content(name)).toBe(content('seed'));
      expect(statSync(at(name)).mode & 0o777).toBe(0o600);
    }
  });

  test('a share is its owner’s to read, and neither it nor what is printed holds the seed', () => {
    const files = splitTwo();
    for (const file of files) {
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readFileSync(file, 'utf8')).not.toContain(ONE?.seed);
    }
  });

  test('fewer shares are not enough', () => {
    const files = splitTwo();
    const { status, stderr } = run('combine', at('back'), ...files.slice(0, 2));
    expect(status).toBe(1);
    expect(stderr).toMatch(/2 shares are not enough: it takes 3/);
    expect(readdirSync(folder)).not.toContain('back');
  });

  test('one share twice is one', () => {
    const [a = '', b = ''] = splitTwo();
    expect(run('combine', at('back'), a, b, a)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/given twice/),
    });
  });

  test('shares of another split do not mix', () => {
    const files = splitTwo();
    run('generate', at('other'));
    run('split', at('other'), at('others'), '--shares', '3', '--threshold', '3');
    const mixed = [...files.slice(0, 2), at('others/share-3.txt')];
    expect(run('combine', at('back'), ...mixed)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/not of one split/),
    });
  });

  test('a damaged share is noticed, and nothing is written', () => {
    const [a = '', b = '', c = ''] = splitTwo();
    const text = readFileSync(c, 'utf8');
    const flipped = text.replace(/share=(.)/, (_, digit) => `share=${digit === '0' ? '1' : '0'}`);
    writeFileSync(c, flipped);
    expect(run('combine', at('back'), a, b, c)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/bring back another seed/),
    });
    writeFileSync(c, text.slice(0, -5));
    expect(run('combine', at('back'), a, b, c)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/not a share, or is damaged/),
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
])('the command line %j can not be used', (args) => {
  expect(run(...args)).toMatchObject({ status: 2, stderr: expect.stringMatching(/usage: /) });
});
