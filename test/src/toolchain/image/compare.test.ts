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

function image({
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

describe('two images', () => {
  test('that are the same have no difference', () => {
    expect(compareEifs(image(), image())).toEqual([]);
  });

  test.each<[string, Change, string[]]>([
    [
      'a file of the application',
      { app: { 'app/server.js': `${'x'.repeat(99)}y` } },
      ['application ramdisk: /app/server.js: 100 / 100 bytes, different from byte 99'],
    ],
    [
      'a longer file',
      { boot: { init: 'init.' } },
      ['boot ramdisk: /init: 4 / 5 bytes, different from byte 4'],
    ],
    [
      'a file more',
      { boot: { 'etc/x': '' } },
      ['boot ramdisk: /etc: only in the second', 'boot ramdisk: /etc/x: only in the second'],
    ],
    [
      'a mode',
      { executable: true },
      [
        'boot ramdisk: /init: mode 100644 / 100755',
        'application ramdisk: /app/server.js: mode 100644 / 100755',
      ],
    ],
    ['a kernel', { kernel: 'kernEl' }, ['kernel: 6 / 6 bytes, different from byte 4']],
    ['a command line', { cmdline: 'b' }, ['command line: a / b']],
    ['metadata', { metadata: { ...METADATA, ImageName: 'm' } }, ['metadata']],
  ])('with %s that differs report the place of the difference', (_what, change, lines) => {
    expect(compareEifs(image(), image(change))).toEqual(lines);
  });

  test('with another compression are refused by an error that names it', () => {
    expect(compareEifs(image(), image({ level: 0 }))).toEqual([
      'boot ramdisk: its compression',
      'application ramdisk: its compression',
    ]);
  });
});
