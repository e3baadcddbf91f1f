import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { diffLocks, formatLock, type Lock, parseLock } from '../../../../src/toolchain/image/lock.ts';
import { parseUris } from '../../../../src/toolchain/image/update_lock.ts';

const FILE = {
  name: 'libc6',
  version: '2.41-12+deb13u4',
  archive: 'debian',
  path: 'pool/main/g/glibc/libc6_2.41-12+deb13u4_amd64.deb',
  size: 10,
  sha256: 'a'.repeat(64),
} as const;
const LOCK: Lock = {
  suite: 'trixie',
  archive_time: '20260101T000000Z',
  wanted: ['libc6'],
  wanted_sources: [],
  packages: [FILE],
  sources: [],
};

describe('a lock file', () => {
  test('is read as it was written', () => {
    expect(parseLock(formatLock(LOCK), 'x')).toEqual(LOCK);
  });

  test.each(['enclave/debian.lock.json', 'test/e2e/boot/emulator.lock.json'])(
    '%s does not change if it is read and written',
    (path) => {
      const text = readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
      expect(formatLock(parseLock(text, path))).toBe(text);
    },
  );

  test.each<[string, object]>([
    ['a path out of the archive', { packages: [{ ...FILE, path: 'pool/../../etc/passwd' }] }],
    ['an address as its path', { packages: [{ ...FILE, path: 'http://example.com/x.deb' }] }],
    ['an unknown archive', { packages: [{ ...FILE, archive: 'ports' }] }],
    ['a short hash', { packages: [{ ...FILE, sha256: 'aa' }] }],
    ['an unknown property', { packages: [{ ...FILE, md5: 'aa' }] }],
    ['a package twice', { packages: [FILE, FILE] }],
    ['an invalid time', { archive_time: 'today' }],
  ])('with %s is refused', (_what, change) => {
    expect(() => parseLock(JSON.stringify({ ...LOCK, ...change }), 'x')).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID' }),
    );
  });

  test('is compared with another, with a line for each changed package', () => {
    const newer = { ...FILE, version: '2.42-1', sha256: 'b'.repeat(64) };
    const otherFile = { ...FILE, name: 'zlib1g', version: '1.3' };
    expect(diffLocks(LOCK, LOCK)).toEqual([]);
    expect(diffLocks(LOCK, { ...LOCK, archive_time: '20270101T000000Z' })).toEqual([]);
    expect(diffLocks(LOCK, { ...LOCK, packages: [newer, otherFile] })).toEqual([
      '~ libc6 2.41-12+deb13u4 -> 2.42-1',
      '+ zlib1g 1.3',
    ]);
    expect(diffLocks(LOCK, { ...LOCK, packages: [] })).toEqual(['- libc6 2.41-12+deb13u4']);
  });
});

describe("apt's list of files", () => {
  test('becomes entries, ordered by path', () => {
    const sha256 = 'c'.repeat(64);
    expect(
      parseUris(
        `'http://mirror.example/debian/pool/main/z/zlib/zlib1g_1%3a1.3%2bdfsg-1_amd64.deb' zlib1g_1%3a1.3+dfsg-1_amd64.deb 12 SHA256:${sha256}
'http://mirror.example/debian-security/pool/updates/main/l/linux/linux-source-6.12_6.12.1-1_all.deb' linux-source-6.12_6.12.1-1_all.deb 7 SHA256:${sha256}\n`,
      ),
    ).toEqual([
      {
        name: 'zlib1g',
        version: '1:1.3+dfsg-1',
        archive: 'debian',
        path: 'pool/main/z/zlib/zlib1g_1:1.3+dfsg-1_amd64.deb',
        size: 12,
        sha256,
      },
      {
        name: 'linux-source-6.12',
        version: '6.12.1-1',
        archive: 'debian-security',
        path: 'pool/updates/main/l/linux/linux-source-6.12_6.12.1-1_all.deb',
        size: 7,
        sha256,
      },
    ]);
  });

  test('that has any other line is refused', () => {
    expect(() => parseUris("'ftp://mirror.example/x.deb' x.deb 1 MD5Sum:aa")).toThrow(
      expect.objectContaining({ code: 'COMMAND_FAILED' }),
    );
  });
});
