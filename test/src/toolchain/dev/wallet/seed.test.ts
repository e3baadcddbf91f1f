import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../../../src/library/errors.ts';
import { parseSeeds } from '../../../../../src/service/salt_seeds.ts';
import { developmentSeed, seedFolder } from '../../../../../src/toolchain/dev/wallet/seed.ts';

let folder: string;
let file: string;
beforeEach(() => {
  const cache = mkdtempSync(join(tmpdir(), 'dev-wallet-'));
  onTestFinished(() => rmSync(cache, { recursive: true }));
  folder = seedFolder({ XDG_CACHE_HOME: cache });
  file = join(folder, 'seed');
});

test('the seed is in the user’s cache', () => {
  expect(seedFolder({ XDG_CACHE_HOME: '/cache' })).toBe('/cache/sui-enclave/dev-wallet');
  expect(seedFolder({ HOME: '/home/me' })).toBe('/home/me/.cache/sui-enclave/dev-wallet');
});

test('the seed stays the same from start to start, and only its owner can read it', () => {
  const seed = developmentSeed(folder);
  expect(seed).toMatch(/^[0-9a-f]{64}$/);
  expect(developmentSeed(folder)).toBe(seed);
  expect([statSync(folder).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(readdirSync(folder)).toEqual(['seed']);
});

test('the seed differs from one cache to another', () => {
  const seed = developmentSeed(folder);
  rmSync(folder, { recursive: true });
  expect(developmentSeed(folder)).not.toBe(seed);
});

test('the seed is marked in its file, so that a salt service refuses it', () => {
  const seed = developmentSeed(folder);
  const text = readFileSync(file, 'utf8');
  expect(text).toBe(`sui-enclave development seed: ${seed}\n`);
  expect(() => parseSeeds(text.trim())).toThrow(/^SALT_SEED is the development seed of make dev-wallet/);
  expect(() => parseSeeds(text.trim())).not.toThrow(seed);
  expect(parseSeeds(seed)).toEqual([Buffer.from(seed, 'hex')]);
});

describe('the seed is refused', () => {
  test.each([
    ['the file', () => file, 0o640, 'chmod 600'],
    ['the folder', () => folder, 0o711, 'chmod 700'],
  ])('if others have access to %s', (_, path, mode, remedy) => {
    developmentSeed(folder);
    chmodSync(path(), mode);
    expect(() => developmentSeed(folder)).toThrow(ConfigError);
    expect(() => developmentSeed(folder)).toThrow(`others have access to ${path()}: ${remedy}`);
  });

  test.each([
    ['a seed without the mark', 'ab'.repeat(32)],
    ['half a seed', `sui-enclave development seed: ${'ab'.repeat(16)}`],
    ['nothing', ''],
  ])('if the file holds %s, without quoting it', (_, text) => {
    developmentSeed(folder);
    writeFileSync(file, text);
    expect(() => developmentSeed(folder)).toThrow(`${file} does not hold a seed of make dev-wallet`);
    expect(() => developmentSeed(folder)).not.toThrow(/abab/);
  });
});
