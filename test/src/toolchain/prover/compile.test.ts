import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { computeCircuitHash, locateArtifacts } from '../../../../src/toolchain/prover/artifacts.ts';
import { buildWhole, removeOlder } from '../../../../src/toolchain/prover/compile.ts';

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'compile-test-'));
});
afterEach(() => rmSync(cache, { recursive: true }));

test('a folder is built once, and as a whole', () => {
  const folder = join(cache, 'a/b');
  let builds = 0;
  const build = (partial: string) => {
    expect(existsSync(folder)).toBe(false);
    writeFileSync(join(partial, 'file'), String(++builds));
  };
  buildWhole(folder, build);
  buildWhole(folder, build);
  expect(builds).toBe(1);
  expect(readdirSync(folder)).toEqual(['file']);
});

test('if two builds run at once, the folder of the first to finish stays, and both succeed', () => {
  const folder = join(cache, 'a');
  buildWhole(folder, (partial) => {
    // Another process makes the folder.
    mkdirSync(folder);
    writeFileSync(join(folder, 'file'), 'first');
    writeFileSync(join(partial, 'other'), 'second');
  });
  expect(readdirSync(folder)).toEqual(['file']);
  expect(readdirSync(cache)).toEqual(['a']);
});

test('a build that fails leaves no folder', () => {
  expect(() =>
    buildWhole(join(cache, 'a'), (partial) => {
      writeFileSync(join(partial, 'file'), 'half');
      throw new Error('stopped');
    }),
  ).toThrow('stopped');
  expect(readdirSync(cache)).toEqual([]);
});

test('two versions of a folder are kept: the current version, and the newest of the others', () => {
  const createVersion = (name: string, hoursAgo: number) => {
    const folder = join(cache, name);
    mkdirSync(folder);
    const time = Date.now() / 1000 - 3600 * hoursAgo;
    utimesSync(folder, time, time);
    return folder;
  };
  const current = createVersion(`circuit-small-${'a'.repeat(16)}`, 9);
  createVersion(`circuit-small-${'b'.repeat(16)}`, 2);
  createVersion(`circuit-small-${'c'.repeat(16)}`, 1);
  createVersion(`circuit-full-${'d'.repeat(16)}`, 99);
  createVersion(`circuit-small-${'e'.repeat(16)}.77.partial`, 99);
  removeOlder(current);
  expect(readdirSync(cache).sort()).toEqual([
    `circuit-full-${'d'.repeat(16)}`,
    `circuit-small-${'a'.repeat(16)}`,
    `circuit-small-${'c'.repeat(16)}`,
    `circuit-small-${'e'.repeat(16)}.77.partial`,
  ]);
});

test('each size has its own circuit and key', () => {
  const [small, full] = [locateArtifacts('small', cache), locateArtifacts('full', cache)];
  expect(new Set([small.circuit, small.key, full.circuit, full.key]).size).toBe(4);
  expect(computeCircuitHash(PROFILES.small)).not.toBe(computeCircuitHash({ ...PROFILES.small, header: 247 }));
});
