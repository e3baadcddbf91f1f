import { spawnSync } from 'node:child_process';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { dataArchive, readTarFile, tarEntries } from '../../../../src/toolchain/image/deb.ts';
import { makeDeb, makeTar } from './packages.ts';

const TAR = makeTar({ './': '', './usr/': '', './usr/bin/true': 'program' });
/** Output of the program xz, which not every machine has. */
const xz = spawnSync('xz', ['-c'], { input: TAR });
const HEAD = { 'debian-binary': Buffer.from('2.0\n'), 'control.tar.xz': Buffer.from('odd') };

describe('a package', () => {
  test.each([
    ['data.tar', TAR],
    ['data.tar.gz', gzipSync(TAR)],
    ['data.tar.zst', zstdCompressSync(TAR)],
  ])('gives the archive in %s', (name, data) => {
    expect(dataArchive(makeDeb({ ...HEAD, [name]: data })).equals(TAR)).toBe(true);
  });

  test.runIf(xz.status === 0)('gives the archive in data.tar.xz', () => {
    expect(dataArchive(makeDeb({ ...HEAD, 'data.tar.xz': xz.stdout })).equals(TAR)).toBe(true);
  });

  test('is refused if it is compressed by xz and xz is not installed', () => {
    vi.stubEnv('PATH', '/nowhere');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(() => dataArchive(makeDeb({ ...HEAD, 'data.tar.xz': Buffer.from('xz') }))).toThrow(
      expect.objectContaining({
        code: 'COMMAND_FAILED',
        message: expect.stringMatching(/^xz is not installed.*xz-utils/),
      }),
    );
  });

  test.runIf(xz.status === 0)('is refused if its data.tar.xz is not compressed by xz', () => {
    expect(() => dataArchive(makeDeb({ ...HEAD, 'data.tar.xz': Buffer.from('odd') }))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });

  test.each([
    ['is not an archive', Buffer.from('hello, world')],
    ['has no data.tar', makeDeb(HEAD)],
    ['has an unknown compression', makeDeb({ ...HEAD, 'data.tar.lz4': TAR })],
    ['is truncated', makeDeb({ ...HEAD, 'data.tar': TAR }).subarray(0, -100)],
  ])('is refused if it %s', (_fault, deb) => {
    expect(() => dataArchive(deb)).toThrow(expect.objectContaining({ code: 'ARCHIVE_INVALID' }));
  });
});

describe('a tar archive', () => {
  test('gives the names of its entries, and the offsets of their contents', () => {
    const size = TAR.indexOf('\0', 1536) - 1536;
    expect(tarEntries(TAR)).toEqual([
      { path: './', start: 512, size: 0, end: 512 },
      { path: './usr/', start: 1024, size: 0, end: 1024 },
      { path: './usr/bin/true', start: 1536, size, end: 2048 },
    ]);
    expect(readTarFile(TAR, './usr/bin/true')).toEqual(TAR.subarray(1536, 1536 + size));
    expect(() => readTarFile(TAR, './usr/bin/false')).toThrow(/has no .\/usr\/bin\/false/);
  });

  test('may have names longer than its header', () => {
    const name = `./usr/${'x'.repeat(120)}`;
    const long = makeTar({ './@LongLink': `${name}\0`, './usr/xxx': '' });
    long.write('L', 156);
    // This is the sum of the first header, whose type has changed from 0 to L.
    const sum = Number.parseInt(long.toString('latin1', 148, 154), 8) + 'L'.charCodeAt(0) - '0'.charCodeAt(0);
    long.write(sum.toString(8).padStart(6, '0'), 148);
    expect(tarEntries(long).map(({ path }) => path)).toEqual(['', name]);
  });

  test('that is damaged is refused', () => {
    const wrong = Buffer.from(TAR);
    wrong[3] = 0x41;
    expect(() => tarEntries(wrong)).toThrow(expect.objectContaining({ code: 'ARCHIVE_INVALID' }));
    expect(() => tarEntries(TAR.subarray(0, 1536))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
    expect(() => tarEntries(TAR.subarray(0, 2048))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });
});
