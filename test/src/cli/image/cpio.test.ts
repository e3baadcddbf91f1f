import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { readCpio, writeCpio } from '../../../../src/cli/image/cpio.ts';

const FILES = new Map([
  ['etc/hosts', { data: Buffer.from('127.0.0.1 localhost\n') }],
  ['bin/node', { data: Buffer.from('program'), executable: true }],
  ['empty', { data: Buffer.alloc(0) }],
]);

describe('a ramdisk', () => {
  test('contains the files in order, below their folders, without owner or time', () => {
    const archive = writeCpio(FILES, ['dev']);
    expect(readCpio(archive).map(({ path, mode, data }) => [path, mode.toString(8), String(data)])).toEqual([
      ['bin', '40755', ''],
      ['bin/node', '100755', 'program'],
      ['dev', '40755', ''],
      ['empty', '100644', ''],
      ['etc', '40755', ''],
      ['etc/hosts', '100644', '127.0.0.1 localhost\n'],
    ]);
    // These fields are the first entry's user, group, number of links and time.
    expect(archive.toString('latin1', 6 + 16, 6 + 48)).toBe('00000000000000000000000200000000');
  });

  test('does not depend on the order in which its files are passed', () => {
    const reversed = new Map([...FILES].reverse());
    expect(writeCpio(reversed, ['dev']).equals(writeCpio(FILES, ['dev']))).toBe(true);
  });

  test('can be read by cpio, if it is installed', ({ skip }) => {
    const archive = writeCpio(FILES, ['dev']);
    let listing = '';
    try {
      listing = execFileSync('cpio', ['-it', '--quiet'], { input: archive, encoding: 'utf8' });
    } catch {
      skip('cpio is not installed');
    }
    expect(listing.trim().split('\n')).toEqual(readCpio(archive).map(({ path }) => path));
  });

  test.each(['/etc/hosts', 'etc/../../x', 'with space', 'new\nline', ''])('refuses the path %j', (path) => {
    expect(() => writeCpio(new Map([[path, { data: Buffer.alloc(0) }]]))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });

  test('is refused if it is cut short anywhere, or if bytes follow it', () => {
    const archive = writeCpio(FILES);
    for (let length = 0; length < archive.length; length += 1) {
      expect(() => readCpio(archive.subarray(0, length)), `${length} bytes`).toThrow(
        expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
      );
    }
    expect(() => readCpio(Buffer.concat([archive, Buffer.alloc(4)]))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });
});
