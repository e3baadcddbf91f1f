import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { writeCpio } from '../../../../src/cli/image/cpio.ts';
import type { Metadata } from '../../../../src/cli/image/eif/format.ts';
import { compareEifs } from '../../../../src/toolchain/image/compare.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { METADATA } from './metadata.ts';

interface Change {
  kernel?: string;
  cmdline?: string;
  boot?: Record<string, string>;
  app?: Record<string, string>;
  executable?: boolean;
  level?: number;
  metadata?: Metadata;
}

function makeImage({
  kernel = 'kernel',
  cmdline = 'a',
  boot = {},
  app = {},
  executable = false,
  level = 9,
  metadata = METADATA,
}: Change = {}): Buffer {
  const ramdisk = (files: Record<string, string>) =>
    gzipSync(
      writeCpio(
        new Map(Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text), executable }])),
      ),
      { level },
    );
  return writeEif(
    {
      kernel: Buffer.from(kernel),
      cmdline,
      ramdisks: [ramdisk({ init: 'init', ...boot }), ramdisk({ 'app/server.js': 'x'.repeat(100), ...app })],
    },
    metadata,
  );
}

describe('the comparison of two images', () => {
  test('finds no difference between identical images', () => {
    expect(compareEifs(makeImage(), makeImage())).toEqual([]);
  });

  test.each<[string, Change, string[]]>([
    [
      'the content of a file',
      { app: { 'app/server.js': `${'x'.repeat(99)}y` } },
      ['application ramdisk: /app/server.js: 100 / 100 bytes, different from byte 99'],
    ],
    [
      'the length of a file',
      { boot: { init: 'init.' } },
      ['boot ramdisk: /init: 4 / 5 bytes, different from byte 4'],
    ],
    [
      'the number of files',
      { boot: { 'etc/x': '' } },
      ['boot ramdisk: /etc: only in the second', 'boot ramdisk: /etc/x: only in the second'],
    ],
    [
      'the mode of a file',
      { executable: true },
      [
        'boot ramdisk: /init: mode 100644 / 100755',
        'application ramdisk: /app/server.js: mode 100644 / 100755',
      ],
    ],
    ['the kernel', { kernel: 'kernEl' }, ['kernel: 6 / 6 bytes, different from byte 4']],
    ['the command line', { cmdline: 'b' }, ['command line: a / b']],
    ['the metadata', { metadata: { ...METADATA, ImageName: 'm' } }, ['metadata']],
  ])('locates a difference in %s', (_part, change, lines) => {
    expect(compareEifs(makeImage(), makeImage(change))).toEqual(lines);
  });

  test.each([
    ['is not gzip', Buffer.from('070701')],
    ['is cut off', gzipSync('070701').subarray(0, -4)],
  ])('refuses an image with a ramdisk that %s', (_fault, ramdisk) => {
    const parts = { kernel: Buffer.from('kernel'), cmdline: 'a', ramdisks: [ramdisk, ramdisk] };
    expect(() => compareEifs(makeImage(), writeEif(parts, METADATA))).toThrow(
      expect.objectContaining({ code: 'ARCHIVE_INVALID' }),
    );
  });

  test('lists any number of differences', () => {
    const names = Array.from({ length: 150_000 }, (_, index) => [`f${index}`, ''] as const);
    expect(compareEifs(makeImage(), makeImage({ app: Object.fromEntries(names) }))).toHaveLength(150_000);
  });

  test('names the compression if the content is the same', () => {
    expect(compareEifs(makeImage(), makeImage({ level: 0 }))).toEqual([
      'boot ramdisk: its compression',
      'application ramdisk: its compression',
    ]);
  });
});
