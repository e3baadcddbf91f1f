import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  DEPENDENCY_FIELDS,
  listMismatches,
  readManifests,
  type Versioned,
} from '../../../scripts/check/versions.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('the packages of this repository have the same version', () => {
  const manifests = readManifests(ROOT);
  const version = manifests.get('package.json')?.version ?? '';
  expect(manifests.size).toBeGreaterThan(10);
  expect(listMismatches(version, [...manifests.values()])).toEqual([]);
});

test('the lockfile has the versions and dependencies of each package.json', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [path, manifest] of readManifests(ROOT)) {
    const folder = dirname(path);
    const locked: Versioned = packages[folder === '.' ? '' : folder] ?? {};
    for (const field of ['version', ...DEPENDENCY_FIELDS] as const) {
      const expected = manifest[field] ?? {};
      expect([path, field, locked[field] ?? {}]).toEqual([path, field, expected]);
    }
  }
});

test.each(['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'])(
  'finds a package with a different version, and a range or a different version among %s',
  (field) => {
    const manifests = [
      { name: 'library', version: '1.2.3', [field]: { valibot: '^1.0.0' } },
      { name: 'server', version: '1.2.4', [field]: { library: '^1.2.3' } },
      { name: 'cli', version: '1.2.3', [field]: { library: '1.2.3', server: '1.2.4' } },
    ];
    expect(listMismatches('1.2.3', manifests)).toEqual([
      'server has version 1.2.4, not 1.2.3',
      'server depends on library ^1.2.3, not 1.2.3',
      'cli depends on server 1.2.4, not 1.2.3',
    ]);
  },
);

test('finds a package without a version', () => {
  expect(listMismatches('1.2.3', [{ name: 'library' }])).toEqual([
    'library has version undefined, not 1.2.3',
  ]);
});
