/** Tests the comparison with an image of the admin, which may contain anything. */
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { writeCpio } from '../../../../src/cli/image/cpio.ts';
import { listDifferences } from '../../../../src/toolchain/audit/rebuild.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { METADATA } from '../image/metadata.ts';

function makeImage(ramdisk: Buffer): Buffer {
  return writeEif({ kernel: Buffer.from('kernel'), cmdline: 'a', ramdisks: [ramdisk, ramdisk] }, METADATA);
}

test.each([
  ['is not an image', Buffer.from('x')],
  ['has ramdisks that are not gzip', makeImage(Buffer.from('070701'))],
  ['has ramdisks that are not cpio', makeImage(gzipSync('x'))],
])('an image that %s differs, and can not be read', (_fault, localImage) => {
  const built = { eif: makeImage(gzipSync(writeCpio(new Map()))) };
  expect(listDifferences(built as Parameters<typeof listDifferences>[0], localImage)).toEqual([
    expect.stringMatching(/^the local image can't be read: /),
  ]);
});
