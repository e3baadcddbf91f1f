/**
 * Tests the walls between the packages, which ARCHITECTURE.md describes. Node, the compiler and Biome do not
 * report the breaches below. Biome only reports imports of packages that are not declared.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  /** Modules of the package's `#` imports, by condition. */
  readonly imports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

interface Package extends Manifest {
  readonly folder: string;
  /** Paths of its TypeScript files, from the root. */
  readonly files: readonly string[];
}

const readManifest = (folder: string): Manifest => JSON.parse(read(join(folder, 'package.json')));
const repository = readManifest('.');
const PACKAGES: readonly Package[] = globSync('src/{*,apps/*}/package.json', { cwd: ROOT }).map((path) => {
  const folder = dirname(path);
  const files = globSync(`${folder}/**/*.{ts,tsx}`, { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return { ...readManifest(folder), folder, files };
});
const byName = new Map(PACKAGES.map((workspace) => [workspace.name, workspace]));

/**
 * Pairs of modules that export the same names. The condition of the import, such as "node", selects a module
 * of the pair; the second one is for Node.
 */
const ALTERNATIVES = {
  '#platform_fetch': ['src/library/platform_fetch.ts', 'src/library/platform_fetch_node.ts'],
  '#keyless': ['src/library/release/keyless.ts', 'src/library/release/keyless_node.ts'],
} as const;
const NODE_ALTERNATIVES: readonly string[] = Object.values(ALTERNATIVES).map(([, forNode]) => forNode);

/**
 * Returns whether a file may import packages for development. Such files are tests, fakes and calls of dapps,
 * which no image contains.
 */
const isForDevelopment = (file: string) => /^src\/apps\/[^/]+\/(test\/|(stand_in|calls)\.ts$)/.test(file);

const importsByFile = new Map<string, readonly string[]>();

/** Lists the imports of a file. Keeps the list, since many tests need it. */
function listImports(file: string): readonly string[] {
  const imports = importsByFile.get(file) ?? findImports(read(file));
  importsByFile.set(file, imports);
  return imports;
}

/** Returns the modules that a source imports, also by type-only and dynamic imports. */
function findImports(source: string): string[] {
  const specifiers = source.matchAll(
    /^(?:import|export)\b(?:[^;'"]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm,
  );
  return [...specifiers].map(([, name = '', lazy = name]) => lazy);
}

const parsePackageName = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** Returns the imports that leave a package by a relative path, or that name the package itself. */
const findBreaches = (source: string, file: string, { folder, name }: Pick<Package, 'folder' | 'name'>) =>
  findImports(source).filter((specifier) =>
    specifier.startsWith('.')
      ? !join(dirname(file), specifier).startsWith(`${folder}/`)
      : parsePackageName(specifier) === name,
  );

/** Returns the cycles of a graph, one for each arrow that closes a cycle, as text with the nodes in order. */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (node: string, path: readonly string[]) => {
    const start = path.indexOf(node);
    if (start !== -1) cycles.push([...path.slice(start), node].join(' > '));
    if (start !== -1 || done.has(node)) return;
    for (const next of graph.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of graph.keys()) visit(node, []);
  return cycles;
}

/**
 * Returns the files that an import may load, depending on conditions. For an npm package, it returns none.
 */
function resolveFiles(from: string, specifier: string): string[] {
  if (specifier.startsWith('.')) return [join(dirname(from), specifier)];
  if (specifier.startsWith('#')) {
    const { imports, folder = '' } = PACKAGES.find(({ files }) => files.includes(from)) ?? {};
    return [...new Set(Object.values(imports?.[specifier] ?? {}))].map((target) => join(folder, target));
  }
  const { exports, folder = '' } = byName.get(parsePackageName(specifier)) ?? {};
  const target = exports?.[`.${specifier.slice(parsePackageName(specifier).length)}`];
  return target === undefined ? [] : [join(folder, target)];
}

describe.each(PACKAGES)('$name', ({ files, ...manifest }) => {
  test('imports nothing outside its folder by a relative path, and does not import itself by name', () => {
    expect(files.length).toBeGreaterThan(0);
    const breaches = files.flatMap((file) =>
      findBreaches(read(file), file, manifest).map((specifier) => `${file} imports ${specifier}`),
    );
    expect(breaches).toEqual([]);
  });

  test('imports every package of this repository that it declares', () => {
    const importedPackages = new Set(files.flatMap(listImports).map(parsePackageName));
    const declaredPackages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(declaredPackages.filter((name) => byName.has(name) && !importedPackages.has(name))).toEqual([]);
  });

  test('exports only modules that exist and that a test or another package imports, except for entries of published packages', () => {
    const tests = globSync('test/{e2e,fixtures}/**/*.ts', { cwd: ROOT });
    const packages = PACKAGES.filter(({ name }) => name !== manifest.name).flatMap(
      (workspace) => workspace.files,
    );
    const importers = [...packages, ...tests];
    const specifiers = new Set(importers.flatMap(listImports));
    for (const [path, target] of Object.entries(manifest.exports ?? {})) {
      expect(existsSync(join(ROOT, manifest.folder, target)), target).toBe(true);
      const isEntry =
        // The program loads the toolchain by a name that it resolves itself.
        (manifest.name === 'sui-enclave-toolchain' && path === '.') ||
        (manifest.name === 'sui-enclave' && !path.slice(2).includes('/') && target.endsWith('/index.ts'));
      expect([path, isEntry || specifiers.has(`${manifest.name}${path.slice(1)}`)]).toEqual([path, true]);
    }
  });

  test('has the version of the repository, and declares each package at its installed version', () => {
    expect(manifest.version).toBe(repository.version);
    // The library's peer dependencies are ranges.
    const exactPeers = manifest.name === 'sui-enclave' ? {} : manifest.peerDependencies;
    for (const [name, version] of Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...exactPeers,
    })) {
      const installed = JSON.parse(read(`node_modules/${name}/package.json`)).version;
      expect([name, version]).toEqual([name, installed]);
    }
  });
});

test('Biome checks the dependencies of every application that has a package.json', () => {
  const { overrides } = JSON.parse(read('biome.json')) as { overrides: { includes: string[] }[] };
  const checked = overrides.find((override) => JSON.stringify(override).includes('noUndeclaredDependencies'));
  const applications = PACKAGES.filter(({ folder }) => folder.startsWith('src/apps/'));
  expect(applications.length).toBeGreaterThan(0);
  // The dependencies of all other applications are the repository's.
  expect(checked?.includes).toEqual(expect.arrayContaining(applications.map(({ folder }) => `${folder}/**`)));
});

test('the repository has exactly these dependencies, and each installed package has the declared version', () => {
  expect(Object.keys(repository.dependencies ?? {}).sort()).toEqual([
    '@mysten/bcs',
    '@mysten/sui',
    '@noble/curves',
    'axios',
    'express',
    'node-addon-api',
    'pino',
    'vitest',
  ]);
  const all = {
    ...repository.dependencies,
    ...repository.devDependencies,
    ...repository.optionalDependencies,
  };
  for (const [name, version] of Object.entries(all)) {
    if (!existsSync(join(ROOT, 'node_modules', name))) continue;
    const installed: string = JSON.parse(read(`node_modules/${name}/package.json`)).version;
    // Grafana's version begins with a v.
    expect([name, version]).toEqual([name, installed.replace(/^v/, '')]);
  }
});

test('no package is installed a second time in a workspace', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: object };
  expect(Object.keys(packages).filter((path) => /^src\/.*\/node_modules\//.test(path))).toEqual([]);
});

test('a deep import by name is refused where the package does not export it', () => {
  const resolve = (specifier: string) => createRequire(join(ROOT, 'src/cli/command.ts')).resolve(specifier);
  expect(resolve('sui-enclave-server/boot')).toBe(join(ROOT, 'src/server/boot.ts'));
  expect(() => resolve('sui-enclave-server/keys/key')).toThrow(/not defined by "exports"/);
  expect(() => resolve('sui-enclave-server/keys/key.ts')).toThrow(/not defined by "exports"/);
});

test.each([
  ["import { a } from '../service/log.ts';", ['../service/log.ts']],
  ["import type { A } from '../../test/support.ts';", ['../../test/support.ts']],
  ["export * from './nsm/../../library/errors.ts';", ['./nsm/../../library/errors.ts']],
  ["const { a } = await import('../service/log.ts');", ['../service/log.ts']],
  ["import 'sui-enclave-server/boot';", ['sui-enclave-server/boot']],
  ["import { a } from './own.ts';\nimport b from 'node:fs';\nimport { c } from 'sui-enclave/errors';", []],
])('the breaches in %j are %j', (source, breaches) => {
  const server = { folder: 'src/server', name: 'sui-enclave-server' };
  expect(findBreaches(source, 'src/server/boot.ts', server)).toEqual(breaches);
});

describe('cycles', () => {
  test('do not exist between packages, even if devDependencies count', () => {
    const graph = new Map(
      PACKAGES.map(({ name, dependencies, devDependencies }) => [
        name,
        Object.keys({ ...dependencies, ...devDependencies }).filter((dependency) => byName.has(dependency)),
      ]),
    );
    expect(findCycles(graph)).toEqual([]);
  });

  test('do not exist between files, even if type-only and dynamic imports count', () => {
    const files = [
      ...PACKAGES.flatMap((workspace) => workspace.files),
      ...globSync('scripts/**/*.ts', { cwd: ROOT }),
    ];
    const graph = new Map(
      files.map((file) => [file, listImports(file).flatMap((specifier) => resolveFiles(file, specifier))]),
    );
    expect(graph.get('src/service/oidc/keys.ts'), 'type-only').toContain('src/service/oidc/clients.ts');
    expect(graph.get('src/library/client/client.ts'), 'dynamic').toContain(
      'src/library/client/registered.ts',
    );
    expect(graph.get('src/server/boot.ts'), 'by name').toContain('src/service/log.ts');
    expect(graph.get('src/library/fetch.ts'), 'by conditions').toEqual(ALTERNATIVES['#platform_fetch']);
    expect(findCycles(graph)).toEqual([]);
  });

  test.each([
    [{ a: ['b'], b: ['a'] }, ['a > b > a']],
    [{ a: ['a'] }, ['a > a']],
    [{ a: ['b', 'd'], b: ['c'], c: ['d', 'b'], d: [] }, ['b > c > b']],
    [{ a: ['b'], b: ['c', 'a'], c: ['a'] }, ['a > b > c > a', 'a > b > a']],
    [{ a: ['b', 'c'], b: ['d'], c: ['d'], d: ['outside'] }, []],
  ])('of the graph %j are %j', (graph, cycles) => {
    expect(findCycles(new Map(Object.entries(graph)))).toEqual(cycles);
  });
});

describe('the library, which runs in browsers too', () => {
  const { files = [], imports = {} } = byName.get('sui-enclave') ?? {};

  test('imports no module of Node, except in one module that only Node loads', () => {
    const nodeImports = files.flatMap((file) =>
      listImports(file).flatMap((specifier) =>
        specifier.startsWith('node:') ? `${file} imports ${specifier}` : [],
      ),
    );
    expect(nodeImports).toEqual(
      ['http', 'https'].map((name) => `src/library/platform_fetch_node.ts imports node:${name}`),
    );
  });

  test.each(Object.entries(ALTERNATIVES))(
    'names the module of %s for Node only under "node", after the conditions of runtimes that also set "node"',
    (specifier, [elsewhere, forNode]) => {
      const inFolder = (file: string) => file.replace('src/library/', './');
      const conditions = Object.entries(imports[specifier] ?? {});
      expect(conditions.filter(([, target]) => target !== inFolder(elsewhere))).toEqual([
        ['node', inFolder(forNode)],
      ]);
      expect(conditions.map(([condition]) => condition)).toEqual([
        'browser',
        'worker',
        'workerd',
        'edge-light',
        'deno',
        'bun',
        'node',
        'default',
      ]);
      const name = forNode.split('/').at(-1) ?? '';
      expect(files.filter((file) => listImports(file).some((specifier) => specifier.endsWith(name)))).toEqual(
        [],
      );
    },
  );

  test('names no other module by condition', () => {
    expect(Object.keys(imports)).toEqual(Object.keys(ALTERNATIVES));
  });
});

test('the HTTP service imports nothing that concerns enclaves or Sui', () => {
  const files = byName.get('sui-enclave-service')?.files ?? [];
  const specifiers = files.flatMap(listImports).filter((specifier) => specifier.startsWith('sui-enclave'));
  expect(specifiers).toContain('sui-enclave/errors');
  expect(
    specifiers.filter(
      (specifier) => !/^sui-enclave\/(errors|fetch|json_text|wording|token\/\w+)$/.test(specifier),
    ),
  ).toEqual([]);
});

test('an application imports only the main module of the server, and its files in an image import no fake', () => {
  for (const name of ['sui-enclave-weather', 'sui-enclave-salt']) {
    const files = byName.get(name)?.files.filter((file) => !isForDevelopment(file)) ?? [];
    const specifiers = files.flatMap(listImports);
    expect(specifiers).toContain('sui-enclave-server');
    expect(
      specifiers.filter((specifier) => /^sui-enclave-server\/|\bfake\b|testing/.test(specifier)),
    ).toEqual([]);
  }
});

test('the console imports only published modules, and no package imports the console', () => {
  const files = byName.get('sui-enclave-console')?.files ?? [];
  const specifiers = files.flatMap(listImports).filter((specifier) => specifier.startsWith('sui-enclave'));
  expect(specifiers).toContain('sui-enclave/attestation');
  expect(
    specifiers.filter((specifier) => !/^sui-enclave\/(attestation|client|sui)$/.test(specifier)),
  ).toEqual([]);
  expect(files.flatMap(listImports).filter((specifier) => specifier.startsWith('node:'))).toEqual(
    // The console's build runs in Node.
    ['node:fs', 'node:path', 'node:url'],
  );
  const foreignFiles = PACKAGES.filter(({ name }) => name !== 'sui-enclave-console').flatMap(
    (workspace) => workspace.files,
  );
  expect(
    foreignFiles.filter((file) => listImports(file).some((specifier) => specifier.includes('console/'))),
  ).toEqual([]);
});

test('no path is taken from the pathname of a URL, in which a space is %20', () => {
  const files = globSync('{src,scripts,test,examples,deploy}/**/*.{ts,tsx,cjs,mjs,js}', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/dist/**'],
  });
  const pathname = /new URL\([^()]*\bimport\.meta\.url\)\.pathname\b/;
  expect(pathname.test(`new URL('.', import.meta.${'url'}).pathname`)).toBe(true);
  expect(files.filter((file) => pathname.test(read(file)))).toEqual([]);
});

test('scripts and packages never import files of test/', () => {
  const files = [
    ...PACKAGES.flatMap((workspace) => workspace.files),
    ...globSync('scripts/**/*.ts', { cwd: ROOT }),
  ];
  const isTest = (file: string, specifier: string) =>
    resolveFiles(file, specifier).some((target) => target.startsWith('test/'));
  expect(files.filter((file) => listImports(file).some((specifier) => isTest(file, specifier)))).toEqual([]);
});

test('the table of ARCHITECTURE.md lists the packages that each package imports', () => {
  const rows = [...read('ARCHITECTURE.md').matchAll(/^\| `(src\/[\w/]+)` \| `([\w-]+)` \| ([^|]*) \|/gm)];
  const tableRows = rows.map(([, folder, name, imports = '']) => [
    folder,
    name,
    [...imports.matchAll(/`([\w-]+)`/g)].map(([, packageName]) => packageName).sort(),
  ]);
  const expected = PACKAGES.map(({ folder, name, dependencies }) => [
    folder,
    name,
    Object.keys(dependencies ?? {})
      .filter((packageName) => byName.has(packageName))
      .sort(),
  ]);
  expect(tableRows.sort()).toEqual(expected.sort());
});

test('no two modules of services and of the library export the same name', () => {
  const modulesByExport = new Map<string, string[]>();
  const packages = PACKAGES.filter(({ folder }) =>
    /^src\/(library|service|server|prover|apps\/\w+)$/.test(folder),
  );
  const isCounted = (file: string) => !isForDevelopment(file) && !NODE_ALTERNATIVES.includes(file);
  for (const file of packages.flatMap(({ files }) => files).filter(isCounted)) {
    const declarations = read(file).matchAll(
      /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
    );
    // A type may have the name of its schema, in the same module.
    for (const name of new Set([...declarations].map(([, exported = '']) => exported))) {
      modulesByExport.set(name, [...(modulesByExport.get(name) ?? []), file]);
    }
  }
  expect(modulesByExport.get('EnclaveClient')).toEqual(['src/library/client/client.ts']);
  expect([...modulesByExport].filter(([, modules]) => modules.length > 1)).toEqual([]);
});
