import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { main, prepareRelease } from '../../../scripts/release/main.ts';
import { ConfigError } from '../../../src/library/errors.ts';

const DATE = '2026-01-31';
const FILES: Readonly<Record<string, string | object>> = {
  'package.json': {
    name: 'repository',
    version: '0.1.9',
    devDependencies: { server: '0.1.9', vite: '0.1.9' },
  },
  'src/library/package.json': { name: 'library', version: '0.1.9', peerDependencies: { react: '^19.0.0' } },
  'src/server/package.json': { name: 'server', version: '0.1.9', dependencies: { library: '0.1.9' } },
  'src/apps/price/package.json': { name: 'price', version: '0.1.9', dependencies: { server: '0.1.9' } },
  'test/probe/package.json': { name: 'probe', dependencies: { server: '0.1.9' } },
  'examples/node/package.json': {
    name: 'example',
    version: '0.1.9',
    dependencies: { library: 'file:../../out/library.tgz' },
  },
  'examples/node/package-lock.json': {
    name: 'example',
    version: '0.1.9',
    packages: {
      '': { name: 'example', version: '0.1.9' },
      'node_modules/library': { version: '0.1.9', resolved: 'file:../../out/library.tgz' },
    },
  },
  'package-lock.json': {
    name: 'repository',
    version: '0.1.9',
    packages: {
      '': { name: 'repository', version: '0.1.9', devDependencies: { server: '0.1.9', vite: '0.1.9' } },
      'node_modules/library': { resolved: 'src/library', link: true },
      'node_modules/vite': { version: '0.1.9' },
      'src/library': { version: '0.1.9', name: 'library' },
      'src/server': { version: '0.1.9', name: 'server', dependencies: { library: '0.1.9' } },
    },
  },
  'CHANGELOG.md': '# Changelog\n\n## Unreleased\n\n### Added\n\n- A door.\n\n## 0.1.9\n\nA house.\n',
};

let template: string;
let root: string;
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const write = (path: string, content: string | object) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(
    join(root, path),
    typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`,
  );
};
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const commit = () => git('commit', '--quiet', '--all', '--message', 'all');
const prepare = (version: string, apply = true) => prepareRelease({ root, version, date: DATE, apply });

beforeAll(() => {
  vi.stubEnv('GIT_CONFIG_GLOBAL', '/dev/null');
  for (const role of ['AUTHOR', 'COMMITTER']) {
    for (const field of ['NAME', 'EMAIL']) vi.stubEnv(`GIT_${role}_${field}`, undefined);
  }
  template = mkdtempSync(join(tmpdir(), 'release-'));
  root = template;
  git('init', '--quiet');
  git('config', 'user.name', 'Ada');
  git('config', 'user.email', 'ada@example.com');
  for (const [path, content] of Object.entries(FILES)) write(path, content);
  git('add', '--all');
  commit();
});
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'release-'));
  cpSync(template, root, { recursive: true, preserveTimestamps: true });
});
afterEach(() => rmSync(root, { recursive: true }));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(template, { recursive: true });
});

test('without --apply, prints each file, the commit and the tag, and changes nothing', () => {
  const { text, json } = prepare('0.2.0', false);
  expect(text).toBe(`0.1.9 becomes 0.2.0 (${DATE}):
  CHANGELOG.md: 2 lines
  examples/node/package-lock.json: 1 line
  package-lock.json: 6 lines
  package.json: 2 lines
  src/apps/price/package.json: 2 lines
  src/library/package.json: 1 line
  src/server/package.json: 2 lines
  test/probe/package.json: 1 line
  commit "Release 0.2.0", tag v0.2.0
Nothing has changed yet: pass --apply to make these changes.`);
  expect(json).toMatchObject({ from: '0.1.9', version: '0.2.0', tag: 'v0.2.0', commit: null });
  expect([git('status', '--porcelain'), git('tag'), git('rev-list', '--count', 'HEAD')]).toEqual([
    '',
    '',
    '1',
  ]);
});

test('sets the version of only these packages, in manifests and lockfiles, and commits and tags the change', () => {
  expect(prepare('0.2.0').json).toMatchObject({ commit: git('rev-parse', 'HEAD') });
  const packages = JSON.parse(read('package-lock.json')).packages;
  expect(packages).toEqual({
    '': { name: 'repository', version: '0.2.0', devDependencies: { server: '0.2.0', vite: '0.1.9' } },
    'node_modules/library': { resolved: 'src/library', link: true },
    'node_modules/vite': { version: '0.1.9' },
    'src/library': { version: '0.2.0', name: 'library' },
    'src/server': { version: '0.2.0', name: 'server', dependencies: { library: '0.2.0' } },
  });
  expect(JSON.parse(read('package-lock.json')).version).toBe('0.2.0');
  expect(JSON.parse(read('src/apps/price/package.json'))).toEqual({
    name: 'price',
    version: '0.2.0',
    dependencies: { server: '0.2.0' },
  });
  expect(JSON.parse(read('test/probe/package.json')).dependencies).toEqual({ server: '0.2.0' });
  expect(JSON.parse(read('examples/node/package.json'))).toEqual(FILES['examples/node/package.json']);
  expect(read('CHANGELOG.md')).toBe(
    `# Changelog\n\n## Unreleased\n\n## 0.2.0 (${DATE})\n\n### Added\n\n- A door.\n\n## 0.1.9\n\nA house.\n`,
  );
  expect(git('log', '-1', '--format=%s')).toBe('Release 0.2.0');
  expect([git('status', '--porcelain'), git('tag', '--points-at', 'HEAD')]).toEqual(['', 'v0.2.0']);
});

test.each(['0.1.10', '0.2.0', '0.10.0', '1.0.0', '10.0.0'])('%s is newer than 0.1.9', (version) => {
  expect(prepare(version, false).json).toMatchObject({ version });
});

describe('refuses, and changes nothing:', () => {
  const refuse = (version: string, message: RegExp) => {
    const before = [git('rev-parse', 'HEAD'), git('tag'), git('status', '--porcelain')];
    let error: unknown;
    try {
      prepare(version);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message).toMatch(message);
    expect([git('rev-parse', 'HEAD'), git('tag'), git('status', '--porcelain')]).toEqual(before);
  };

  test.each(['0.1.9', '0.1.8', '0.1.0', '0.0.10', '0.0.999'])(
    'the version %s, which is not newer',
    (version) => {
      refuse(version, /must be newer than 0\.1\.9/);
    },
  );

  test('an edited file', () => {
    write('CHANGELOG.md', `${read('CHANGELOG.md')}\nMore.\n`);
    refuse('0.2.0', /commit or remove these changes first:\nM CHANGELOG\.md$/);
  });

  test('a new file', () => {
    write('src/new.ts', '');
    refuse('0.2.0', /changes first:\n\?\? src\/new\.ts$/);
  });

  test('an existing tag', () => {
    git('tag', 'v0.2.0');
    refuse('0.2.0', /the tag v0\.2\.0 exists/);
  });

  test.each([
    ['an empty unreleased part', '## Unreleased\n\n### Added\n\n## 0.1.9\n\nA house.\n', /has nothing below/],
    ['an empty unreleased part at the end', '## Unreleased\n', /has nothing below/],
    ['a changelog without an unreleased part', '## 0.1.9\n\nA house.\n', /has no heading "## Unreleased"/],
    ['a version with an entry', '## Unreleased\n\nA door.\n\n## 0.2.0 (2026-01-01)\n', /has "## 0\.2\.0 \(/],
  ])('%s', (_case, changelog, message) => {
    write('CHANGELOG.md', changelog);
    commit();
    refuse('0.2.0', message);
  });

  test('packages of several versions', () => {
    write('src/server/package.json', {
      name: 'server',
      version: '0.1.8',
      dependencies: { library: '^0.1.9' },
    });
    commit();
    refuse('0.2.0', /server has version 0\.1\.8, not 0\.1\.9\nserver depends on library \^0\.1\.9/);
  });

  test('an author without a name', () => {
    git('config', 'user.useConfigOnly', 'true');
    git('config', '--unset', 'user.email');
    git('config', '--unset', 'user.name');
    refuse('0.2.0', /^git var failed: /);
  });

  test('a commit that a hook refuses', () => {
    write('.git/hooks/pre-commit', '#!/bin/sh\necho "not today" >&2\nexit 1\n');
    execFileSync('chmod', ['+x', join(root, '.git/hooks/pre-commit')]);
    refuse('0.2.0', /^git commit failed: not today/);
  });

  test("a tag that git can't sign, although it has committed", () => {
    git('config', 'tag.gpgSign', 'true');
    git('config', 'gpg.program', 'false');
    refuse('0.2.0', /^git tag failed: /);
    expect(read('package.json')).toContain('"version": "0.1.9"');
  });
});

test.each(['1.2', '1.2.3-rc.1', 'v1.2.3', '01.2.3', '1.2.3 ', ''])(
  'the version %j is refused as a usage error',
  async (version) => {
    const output: string[] = [];
    const io = { log: output.push, error: (text: string) => output.push(text), stdin: () => '' };
    expect(await main([version], {}, io)).toBe(2);
    expect(output.join('')).toMatch(/^USAGE: .*must be three numbers, such as 1\.2\.3/);
  },
);
