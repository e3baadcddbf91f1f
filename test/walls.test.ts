/** The walls between the folders: which may import which (ARCHITECTURE.md). */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const APPS = globSync('{src,test/fixtures}/apps/*/app.ts', { cwd: ROOT }).map(dirname);
const LIBRARY = ['attestation', 'client', 'sealing', 'sui', 'zklogin'];

/** The modules that a file imports: paths from the root, and bare names. */
function importsOf(file: string): string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const specifiers = source.matchAll(
    /^(?:import|export)\b[^;]*?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm,
  );
  return [...specifiers].map(([, name = '', lazy = name]) =>
    lazy.startsWith('.') ? join(dirname(file), lazy) : lazy,
  );
}

/** The imports of a folder's files that are not allowed. */
function breaches(folder: string, isAllowed: (imported: string) => boolean): string[] {
  const files = globSync(`${folder}/**/*.ts`, {
    cwd: ROOT,
    exclude: ['**/node_modules/**', 'src/apps/*/test/**'],
  });
  expect(files.length).toBeGreaterThan(0);
  return files.flatMap((file) =>
    importsOf(file)
      .filter((imported) => !isAllowed(imported))
      .map((imported) => `${file} imports ${imported}`),
  );
}

/** The cycles of an import graph: the files of each in order, one for each import that closes a cycle. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start !== -1) cycles.push([...path.slice(start), file].join(' > '));
    if (start !== -1 || done.has(file)) return;
    for (const imported of graph.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}

const isWithin = (path: string, folders: readonly string[]) =>
  folders.some((folder) => path === folder || path.startsWith(`${folder}/`));

describe('the walls', () => {
  test('src imports neither scripts nor test', () => {
    expect(breaches('src', (path) => !isWithin(path, ['scripts', 'test']))).toEqual([]);
  });

  test('scripts never import test', () => {
    expect(breaches('scripts', (path) => !isWithin(path, ['test']))).toEqual([]);
  });

  test('src and scripts have no import cycle, even if type-only and dynamic imports count', () => {
    const files = globSync('{src,scripts}/**/*.ts', { cwd: ROOT, exclude: ['**/node_modules/**'] });
    const graph = new Map(files.map((file) => [file, importsOf(file)]));
    expect(importsOf('src/service/oidc/keys.ts'), 'type-only').toContain('src/service/upstream.ts');
    expect(importsOf('src/library/client/client.ts'), 'dynamic').toContain(
      'src/library/client/registered.ts',
    );
    expect(cyclesIn(graph)).toEqual([]);
  });

  test.each([
    [{ a: ['b'], b: ['a'] }, ['a > b > a']],
    [{ a: ['a'] }, ['a > a']],
    [{ a: ['b', 'd'], b: ['c'], c: ['d', 'b'], d: [] }, ['b > c > b']],
    [{ a: ['b'], b: ['c', 'a'], c: ['a'] }, ['a > b > c > a', 'a > b > a']],
    [{ a: ['b', 'c'], b: ['d'], c: ['d'], d: ['outside'] }, []],
  ])('an import graph %j has the cycles %j', (graph, cycles) => {
    expect(cyclesIn(new Map(Object.entries(graph)))).toEqual(cycles);
  });

  test.each(LIBRARY)('src/library/%s, published for browsers, needs neither Node nor the server', (name) => {
    const rooms = [...LIBRARY, 'wire', 'token', 'errors.ts', 'fetch.ts'].map((room) => `src/library/${room}`);
    const isAllowed = (path: string) =>
      path.startsWith('src/') ? isWithin(path, rooms) : !path.startsWith('node:');
    expect(breaches(`src/library/${name}`, isAllowed)).toEqual([]);
  });

  test('src/library/wire, src/library/token, src/library/errors.ts and src/library/fetch.ts need no more than each other', () => {
    const rooms = ['src/library/wire', 'src/library/token', 'src/library/errors.ts', 'src/library/fetch.ts'];
    for (const room of rooms) {
      const folder = room.endsWith('.ts') ? room.slice(0, -3) : `${room}/**/*`;
      for (const file of globSync(`${folder}.ts`, { cwd: ROOT })) {
        const others = importsOf(file).filter((path) => path.startsWith('src/') || path.startsWith('node:'));
        expect(others.filter((path) => !isWithin(path, rooms))).toEqual([]);
      }
    }
  });

  test("src/service/oidc, which servers and commands share, needs no limits of Sui's circuit, nothing of the wallet's library and only a type of the server", () => {
    const facts = ['src/library/token/issuer.ts', 'src/library/token/providers.ts'];
    const rooms = ['src/service/oidc', ...facts, 'src/library/errors.ts', 'src/service/upstream.ts'];
    expect(breaches('src/service/oidc', (path) => !path.startsWith('src/') || isWithin(path, rooms))).toEqual(
      [],
    );
    for (const file of globSync('src/service/oidc/*.ts', { cwd: ROOT })) {
      expect(readFileSync(join(ROOT, file), 'utf8')).not.toMatch(
        /^(?:import|export)(?! type)[^;]*\/upstream\.ts/m,
      );
    }
  });

  test("src/prover needs zkLogin's numbers and claims, and no server but in its two services", () => {
    const rooms = [
      'src/prover',
      'src/service/oidc',
      'src/library/token',
      'src/library/zklogin',
      'src/library/wire',
      'src/library/errors.ts',
    ];
    const services = ['src/prover/frontend', 'src/prover/backend'];
    const found = breaches('src/prover', (path) => !path.startsWith('src/') || isWithin(path, rooms));
    const others = found.filter((breach) => !services.some((service) => breach.startsWith(`${service}/`)));
    expect(others).toEqual([]);
    const withServer = (path: string) =>
      !path.startsWith('src/') || isWithin(path, [...rooms, 'src/service']);
    expect(breaches('src/prover/{frontend,backend}', withServer)).toEqual([]);
    const isOther = (path: string) => !isWithin(path, services);
    for (const folder of ['src/apps', 'src/server', 'src/library/zklogin'])
      expect(breaches(folder, isOther)).toEqual([]);
  });

  test.each(APPS)('%s imports src/server/index.ts, its own files and packages', (folder) => {
    const rooms = folder === 'src/apps/salt' ? ['src/service/oidc', 'src/library/token'] : [];
    const isOfProject = (path: string) => /^(src|scripts|test)\//.test(path);
    const allowed = [folder, 'src/server/index.ts', ...rooms];
    const found = breaches(folder, (path) => !isOfProject(path) || isWithin(path, allowed));
    // Nothing that runs imports a stand-in.
    expect(found.filter((breach) => !breach.startsWith(`${folder}/stand_in.ts `))).toEqual([]);
  });

  test('only applications import src/server/index.ts', () => {
    expect(APPS).toEqual(expect.arrayContaining(['src/apps/weather', 'test/fixtures/apps/dice']));
    const found = breaches('src', (path) => path !== 'src/server/index.ts');
    expect(found.length).toBeGreaterThan(5);
    expect(found.filter((breach) => !breach.startsWith('src/apps/'))).toEqual([]);
  });

  test('the NSM imports neither src/service/http nor Express', () => {
    expect(breaches('src/server/nsm', (path) => !isWithin(path, ['src/service/http', 'express']))).toEqual(
      [],
    );
  });
});

test('no two modules of what runs as a service or in a dapp export the same name', () => {
  const modulesOf = new Map<string, string[]>();
  for (const file of globSync('src/{library,service,server,prover,apps}/**/*.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/stand_in.ts'],
  })) {
    const declared = readFileSync(join(ROOT, file), 'utf8').matchAll(
      /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
    );
    // A type may have the name of its schema, in the same module.
    for (const name of new Set([...declared].map(([, each = '']) => each))) {
      modulesOf.set(name, [...(modulesOf.get(name) ?? []), file]);
    }
  }
  expect(modulesOf.get('EnclaveClient')).toEqual(['src/library/client/client.ts']);
  expect([...modulesOf].filter(([, files]) => files.length > 1)).toEqual([]);
});
