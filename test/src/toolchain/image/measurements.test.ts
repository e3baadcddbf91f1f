import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readRelease } from '../../../../src/cli/release.ts';
import { sourcesInRepository } from '../../../../src/toolchain/image/context.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { CHANNELS, checkChannel, makeMeasurements } from '../../../../src/toolchain/image/measurements.ts';
import { callScript } from '../../cli/run.ts';
import { METADATA } from './metadata.ts';

const PARTS = { kernel: Buffer.from('k'), cmdline: 'a', ramdisks: [Buffer.from('b'), Buffer.from('c')] };
const EIF = writeEif(PARTS, METADATA);
const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');
let root: string;

function git(...args: string[]): string {
  return execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'measurements-'));
  writeFileSync(join(root, 'debian.lock.json'), 'debian');
  mkdirSync(join(root, 'src/apps/weather'), { recursive: true });
  for (const folder of ['.', 'src/apps/weather']) {
    writeFileSync(join(root, folder, 'app.yaml'), 'endpoints: []\nsecrets: []\n');
  }
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'x');
});
afterEach(() => rmSync(root, { recursive: true }));

describe('the measurements', () => {
  const createBuild = () => ({
    channel: 'experimental' as const,
    lock: join(root, 'debian.lock.json'),
    packages: 'a digest',
    eif: EIF,
    relay: Buffer.from('r'),
  });
  const inClone = () => ({
    framework: root,
    root,
    app: join(root, 'src/apps/weather'),
    appDir: 'src/apps/weather',
    isApart: false,
    name: 'weather',
  });

  test('name the sources of the image, and its registers', () => {
    expect(makeMeasurements(inClone(), createBuild())).toEqual({
      application: 'weather',
      folder: 'src/apps/weather',
      framework_version: readRelease().version,
      framework_integrity: null,
      secrets: [],
      commit: git('rev-parse', 'HEAD'),
      unchanged_tree: true,
      committed_lock: true,
      channel: 'experimental',
      promise: CHANNELS.experimental,
      registers: measureImage(PARTS),
      sha256: {
        eif: sha256(EIF),
        kernel: sha256('k'),
        boot_ramdisk: sha256('b'),
        application_ramdisk: sha256('c'),
        debian_lock: sha256('debian'),
        npm_packages: 'a digest',
        relay: sha256('r'),
      },
    });
  });

  test('report that the files are not those of the commit, if git ignores one of them', () => {
    const app = join(root, 'src/apps/weather');
    mkdirSync(join(app, 'public'));
    writeFileSync(join(app, 'app.yaml'), 'endpoints: []\nsecrets: []\nfiles: [public]\n');
    writeFileSync(join(app, 'public/index.html'), '');
    git('add', '.');
    git('commit', '-q', '-m', 'files');
    writeFileSync(join(root, '.git/info/exclude'), '*.map\n');
    writeFileSync(join(app, 'other.map'), '');
    expect(makeMeasurements(inClone(), createBuild())).toMatchObject({ unchanged_tree: true });
    writeFileSync(join(app, 'public/index.map'), '');
    expect(makeMeasurements(inClone(), createBuild())).toMatchObject({ unchanged_tree: false });
  });

  test('name a Node that is not the pinned one', () => {
    const node = { version: '24.0.1', sha256: sha256('n'), bytes: Buffer.from('n') };
    expect(makeMeasurements(inClone(), { ...createBuild(), node })).toMatchObject({
      node_version: '24.0.1',
      sha256: { node: sha256('n') },
    });
  });

  test('of an application in its own repository name the installed framework and the lock file of the application', () => {
    const packages = { 'node_modules/sui-enclave-toolchain': { integrity: 'sha512-abc' } };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
    const apart = { ...inClone(), app: root, appDir: 'src/apps/tide', isApart: true, name: 'tide' };
    expect(makeMeasurements(apart, createBuild())).toMatchObject({
      application: 'tide',
      folder: '',
      framework_integrity: 'sha512-abc',
      committed_lock: null,
      sha256: { package_lock: sha256(JSON.stringify({ packages })) },
    });
  });

  test('distinguish a refreshed lock from the committed one', () => {
    writeFileSync(join(root, 'debian.lock.json'), 'newer');
    expect(makeMeasurements(inClone(), createBuild())).toMatchObject({
      unchanged_tree: false,
      committed_lock: false,
    });
  });
});

describe('the channel', () => {
  test('stable requires an unchanged tree at the tag of a version', () => {
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).toThrow(
      /a tag such as v1.2.3/,
    );
    git('tag', 'latest');
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).toThrow(
      /a tag such as v1.2.3/,
    );
    git('tag', 'v1.2.3');
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).not.toThrow();
    writeFileSync(join(root, 'new'), '');
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).toThrow(
      /without changes/,
    );
  });

  test("stable accepts an author's repository, even if git ignores files beside the application", () => {
    const source = { framework: '/nowhere', app: root, appDir: 'src/apps/x', isApart: true };
    const needed = { modules: [], workspaces: ['src/server'], links: {} };
    const sources = sourcesInRepository(source, { needed, packages: new Map() });
    git('tag', 'v1.2.3');
    writeFileSync(join(root, '.git/info/exclude'), 'node_modules\nout\npublic/built.js\n');
    for (const folder of ['node_modules', 'out', 'public']) {
      mkdirSync(join(root, folder));
      writeFileSync(join(root, folder, 'x.txt'), '');
    }
    git('add', '.');
    git('commit', '-q', '-m', 'y');
    git('tag', '-f', 'v1.2.3');
    expect(() => checkChannel(root, 'stable', sources)).not.toThrow();
    writeFileSync(join(root, 'public/built.js'), '');
    expect(() => checkChannel(root, 'stable', sources)).toThrow(
      /without ignored files:\n!! public\/built.js$/,
    );
  });

  test.each(['src/server', 'enclave', 'apps/x'])('stable refuses files in %s that git ignores', (folder) => {
    git('tag', 'v1.2.3');
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, '.git/info/exclude'), '*.pem\n');
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).not.toThrow();
    writeFileSync(join(root, folder, 'ca.pem'), '');
    expect(() => checkChannel(root, 'stable', ['src/server', 'enclave', 'apps/x'])).toThrow(
      /without ignored files:\n!! /,
    );
    expect(() => checkChannel(root, 'experimental', ['src/server', 'enclave', 'apps/x'])).not.toThrow();
  });

  test('experimental accepts any tree, and unknown channels are refused', async () => {
    expect(() => checkChannel(root, 'experimental', ['src/server', 'enclave', 'apps/x'])).not.toThrow();
    const { status, stderr } = await callScript('../toolchain/image/build.ts', ['--channel', 'nightly']);
    expect(status).toBe(2);
    expect(stderr).toContain('USAGE: --channel must be stable or experimental');
  });
});
