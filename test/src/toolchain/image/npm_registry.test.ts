/**
 * Packages of an author's lock file, fetched by name, version and SHA-512 from the auditor's registry into an
 * empty cache.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from 'tar';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createNpmRegistry } from '../../../../src/toolchain/audit/rebuild.ts';
import { fetchPackages } from '../../../../src/toolchain/image/npm.ts';
import type { NpmPackage } from '../../../../src/toolchain/image/npm_registry.ts';
import { computeIntegrity, type Registered, startRegistry } from './registry.ts';

let dir: string;
let cache: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'npm-registry-test-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  cache = join(dir, 'cache');
});

/** Makes a package whose scripts create a file. */
function packPackage(name: string, content = name): Registered {
  const script = `touch ${join(dir, 'ran')}`;
  const scripts = Object.fromEntries(['prepare', 'prepack', 'install'].map((stage) => [stage, script]));
  mkdirSync(join(dir, 'package'), { recursive: true });
  writeFileSync(join(dir, 'package/package.json'), JSON.stringify({ name, version: '1.0.0', scripts }));
  writeFileSync(join(dir, 'package/index.js'), content);
  const file = join(dir, 'packed.tgz');
  create({ sync: true, file, cwd: dir, gzip: true, portable: true, noMtime: true }, ['package']);
  return { name, version: '1.0.0', tarball: readFileSync(file), manifest: { scripts } };
}

function createLockEntry({ name, version, tarball }: Registered): NpmPackage {
  return { name, version, sha512: createHash('sha512').update(tarball).digest('hex') };
}

/** Fetches packages like an audit on a machine whose npm has this registry, with a token for it. */
function fetchFrom(url: string, packages: readonly NpmPackage[]) {
  writeFileSync(join(dir, '.npmrc'), `registry=${url}\n${url.slice('http:'.length)}:_authToken=word\n`);
  const work = mkdtempSync(join(dir, 'work-'));
  const registry = createNpmRegistry(work, { PATH: process.env['PATH'], HOME: dir });
  return fetchPackages(packages, cache, false, registry);
}

const readCode = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );

describe('a package of a lock file', () => {
  test('comes from the registry, without a token, and none of its scripts runs', async () => {
    const packages = [packPackage('moon'), packPackage('@far/star')];
    const registry = await startRegistry(packages);
    expect(await fetchFrom(registry.url, packages.map(createLockEntry))).toEqual([]);
    expect(readdirSync(cache).sort()).toEqual(
      packages.map((registered) => createLockEntry(registered).sha512).sort(),
    );
    expect(existsSync(join(dir, 'ran'))).toBe(false);
    expect(registry.headers.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    registry.requests.length = 0;
    expect(await fetchFrom(registry.url, packages.map(createLockEntry))).toEqual([]);
    expect(registry.requests).toEqual([]);
  });

  test('is reported as changed, not as missing, if the registry has another SHA-512', async () => {
    const [moon, forged] = [packPackage('moon'), packPackage('moon', 'forged')];
    for (const answer of [
      forged,
      // This registry repeats the digest of the lock file, but serves other bytes.
      { ...forged, integrity: computeIntegrity(moon.tarball) },
    ]) {
      const { url } = await startRegistry([answer]);
      expect(
        await readCode(fetchFrom(url, [createLockEntry(moon), { ...createLockEntry(moon), name: 'gone' }])),
      ).toBe('PACKAGE_CHANGED');
    }
    expect(existsSync(cache) ? readdirSync(cache) : []).toEqual([]);
  });

  test('is reported as missing if the registry lacks it or its version, while the other packages are still cached', async () => {
    const [moon, star] = [packPackage('moon'), packPackage('star')];
    const { url } = await startRegistry([moon, star]);
    const missingPackages = [
      { ...createLockEntry(moon), name: 'gone', sha512: '0'.repeat(128) },
      { ...createLockEntry(star), version: '9.9.9', sha512: '1'.repeat(128) },
    ];
    expect(await fetchFrom(url, [createLockEntry(moon), ...missingPackages])).toEqual(missingPackages);
    expect(readdirSync(cache)).toEqual([createLockEntry(moon).sha512]);
  });

  test.each<[string, Partial<NpmPackage>]>([
    ['a commit of git', { version: 'git+https://evil.example/moon.git#1' }],
    ['a commit of a host', { version: 'github:evil/moon' }],
    ['an address', { version: 'https://evil.example/moon.tgz' }],
    ['a folder', { version: 'file:/tmp/moon' }],
    ['another package', { version: 'npm:evil@1.0.0' }],
    ['a range', { version: '^1.0.0' }],
    ['a tag', { version: 'latest' }],
    ['a folder as its name', { name: '../moon' }],
    ['an address as its name', { name: 'https://evil.example/moon.tgz' }],
  ])('is refused with %s in place of a name and an exact version', async (_kind, change) => {
    const moon = packPackage('moon');
    const { url, requests } = await startRegistry([moon]);
    expect(await readCode(fetchFrom(url, [{ ...createLockEntry(moon), ...change }]))).toBe('LOCK_INVALID');
    expect(requests).toEqual([]);
    expect(existsSync(join(dir, 'ran'))).toBe(false);
  });
});
