/** The examples are projects of their own. Their lockfiles have the same versions as this repository. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => JSON.parse(readFileSync(`${ROOT}${file}`, 'utf8'));

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dependencies?: object;
  readonly peerDependencies?: object;
}

const LIBRARY = 'node_modules/sui-enclave';
const library = read('src/library/package.json');
const rootPackages: Readonly<Record<string, LockedPackage>> = read('package-lock.json').packages;
const packageName = (path: string) => path.replace(/^.*node_modules\//, '');
/**
 * Returns the versions of a package in this repository, since npm may nest one version below another package.
 */
const listRootVersions = (name: string) =>
  Object.entries(rootPackages).flatMap(([path, { version }]) =>
    packageName(path) === name ? [version] : [],
  );

describe.each(globSync('examples/*/package-lock.json', { cwd: ROOT }))('%s', (file) => {
  const lock = read(file);
  const packages: Readonly<Record<string, LockedPackage>> = lock.packages;
  const manifest = read(file.replace('package-lock', 'package'));

  test('agrees with its manifest, which pins every version exactly', () => {
    const { dependencies, devDependencies } = manifest;
    expect(packages['']).toMatchObject({ dependencies, devDependencies });
    const { 'sui-enclave': libraryPath, ...otherDependencies } = { ...dependencies, ...devDependencies };
    expect(libraryPath).toBe('file:../../out/sui-enclave.tgz');
    for (const [name, version] of Object.entries(otherDependencies)) {
      expect([name, version]).toEqual([name, packages[`node_modules/${name}`]?.version]);
    }
  });

  test('has the version and the dependencies of the library, but no digest, which would pin one build of it', () => {
    const { version, resolved, integrity, dependencies, peerDependencies } = packages[LIBRARY] ?? {};
    expect([version, resolved]).toEqual([library.version, 'file:../../out/sui-enclave.tgz']);
    expect(integrity).toBeUndefined();
    expect([dependencies, peerDependencies]).toEqual([library.dependencies, library.peerDependencies]);
  });

  test('has the digest of every other package, and names no host', () => {
    const otherPackages = Object.entries(packages).filter(([path]) => path !== '' && path !== LIBRARY);
    expect(otherPackages.length).toBeGreaterThan(10);
    for (const [path, { resolved, integrity }] of otherPackages) {
      expect([path, resolved, typeof integrity]).toEqual([path, undefined, 'string']);
    }
  });

  test('pins each direct dependency that this repository also has to a version of this repository', () => {
    const { dependencies, devDependencies } = manifest;
    const direct = Object.keys({ ...dependencies, ...devDependencies, ...library.dependencies });
    const shared = direct.filter((name) => name !== library.name && listRootVersions(name).length > 0);
    expect(shared).toContain('@mysten/sui');
    for (const name of shared) {
      expect([name, listRootVersions(name)]).toContainEqual(
        expect.arrayContaining([packages[`node_modules/${name}`]?.version]),
      );
    }
  });
});
