/**
 * These tests state the format in literals of their own, from its description. So they also find a mistake
 * that the reader and the writer share.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import type { Metadata } from '../../../../../src/cli/image/eif/format.ts';
import { measureImage } from '../../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../../src/cli/image/eif/read.ts';
import { formatPcrs } from '../../../../../src/library/attestation/image.ts';
import { writeEif } from '../../../../../src/toolchain/image/eif/write.ts';

const METADATA: Metadata = {
  ImageName: 'n',
  ImageVersion: '1.0.0',
  BuildMetadata: {
    BuildTime: '1970-01-01T00:00:00+00:00',
    BuildTool: 't',
    BuildToolVersion: '1',
    OperatingSystem: 'Linux',
    KernelVersion: '6.12',
  },
  DockerInfo: null,
  CustomMetadata: null,
};
const PARTS = {
  kernel: Buffer.from('kernel'),
  cmdline: 'console=ttyS0',
  ramdisks: [Buffer.from('boot'), Buffer.from('app')],
};

/** Changes the image and corrects its CRC, so that a refusal is caused by the change. */
function changeImage(change: (eif: Buffer) => Buffer | undefined): Buffer {
  const eif = writeEif(PARTS, METADATA);
  const image = change(eif) ?? eif;
  image.writeUInt32BE(crc32(image.subarray(548), crc32(image.subarray(0, 544))), 544);
  return image;
}

describe('an image', () => {
  test('is laid out as the format says', () => {
    const eif = writeEif(PARTS, METADATA);
    const json = JSON.stringify(METADATA);
    expect(eif.toString('latin1', 0, 4)).toBe('.eif');
    expect(eif.readUInt16BE(4)).toBe(4);
    expect(eif.readUInt16BE(6)).toBe(0);
    expect(eif.readBigUInt64BE(8)).toBe(1073741824n);
    expect(eif.readBigUInt64BE(16)).toBe(2n);
    expect(eif.readUInt16BE(26)).toBe(5);
    const data = ['kernel', 'console=ttyS0', json, 'boot', 'app'];
    let offset = 548;
    for (const [at, type] of [1, 2, 5, 3, 3].entries()) {
      const content = data[at] as string;
      expect(eif.readBigUInt64BE(28 + 8 * at)).toBe(BigInt(offset));
      expect(eif.readBigUInt64BE(284 + 8 * at)).toBe(BigInt(content.length));
      expect(eif.readUInt16BE(offset)).toBe(type);
      expect(eif.readUInt16BE(offset + 2)).toBe(0);
      expect(eif.readBigUInt64BE(offset + 4)).toBe(BigInt(content.length));
      expect(eif.toString('latin1', offset + 12, offset + 12 + content.length)).toBe(content);
      offset += 12 + content.length;
    }
    expect(eif.length).toBe(offset);
    expect(eif.readUInt32BE(544)).toBe(crc32(Buffer.concat([eif.subarray(0, 544), eif.subarray(548)])));
  });

  test('is read as it was written, and written in the same way again', () => {
    const eif = writeEif(PARTS, METADATA);
    const read = readEif(eif);
    expect(read).toMatchObject({
      ...PARTS,
      metadata: METADATA,
      architecture: 'x86_64',
      signature: undefined,
    });
    expect(writeEif(read, read.metadata).equals(eif)).toBe(true);
  });

  test('is refused if any single byte is changed', () => {
    const eif = writeEif(PARTS, METADATA);
    for (let at = 0; at < eif.length; at += 1) {
      const wrong = Buffer.from(eif);
      wrong[at] = (wrong[at] as number) ^ 1;
      expect(() => readEif(wrong), `byte ${at}`).toThrow(expect.objectContaining({ code: 'EIF_INVALID' }));
    }
  });

  test('is refused if it is truncated anywhere', () => {
    const eif = writeEif(PARTS, METADATA);
    for (let length = 0; length < eif.length; length += 1) {
      expect(() => readEif(eif.subarray(0, length)), `${length} bytes`).toThrow(
        expect.objectContaining({ code: 'EIF_INVALID' }),
      );
    }
  });

  test.each<[string, (eif: Buffer) => Buffer | undefined, RegExp]>([
    ['another version', (eif) => void eif.writeUInt16BE(3, 4), /version/],
    ['an unknown flag', (eif) => void eif.writeUInt16BE(2, 6), /flag/],
    ['a reserved field', (eif) => void eif.writeUInt16BE(1, 24), /reserved/],
    ['an unused field', (eif) => void eif.writeUInt32BE(1, 540), /reserved/],
    ['no sections', (eif) => void eif.writeUInt16BE(0, 26), /number of sections/],
    ['33 sections', (eif) => void eif.writeUInt16BE(33, 26), /number of sections/],
    [
      'an offset of a section that is not counted',
      (eif) => void eif.writeBigUInt64BE(1n, 28 + 8 * 5),
      /not counted/,
    ],
    ['a gap', (eif) => void eif.writeBigUInt64BE(549n, 28), /ends/],
    ['two sizes of a section', (eif) => void eif.writeBigUInt64BE(5n, 548 + 4), /two different sizes/],
    ['a size past the end', (eif) => void eif.writeBigUInt64BE(2n ** 63n, 284 + 8 * 4), /cut short/],
    ['flags of a section', (eif) => void eif.writeUInt16BE(1, 550), /flags/],
    ['an unknown section', (eif) => void eif.writeUInt16BE(9, 548), /type/],
    ['sections out of order', (eif) => void eif.writeUInt16BE(2, 548), /sections are/],
    ['bytes after the end', (eif) => Buffer.concat([eif, Buffer.alloc(1)]), /after the last/],
    ['a command line of two lines', (eif) => void eif.write('\n', 548 + 12 + 6 + 12), /command line/],
    ['metadata that is not JSON', (eif) => void eif.write('!', 548 + 12 + 6 + 12 + 13 + 12), /metadata/],
  ])('is refused with %s even if its CRC is right', (_what, change, message) => {
    expect(() => readEif(changeImage(change))).toThrow(message);
  });

  test.each([
    [{ ...PARTS, kernel: Buffer.alloc(0) }, /kernel/],
    [{ ...PARTS, cmdline: 'a\0' }, /command line/],
    [{ ...PARTS, cmdline: '' }, /command line/],
    [{ ...PARTS, ramdisks: [Buffer.from('boot')] }, /two ramdisks/],
    [{ ...PARTS, ramdisks: [Buffer.from('boot'), Buffer.alloc(0)] }, /ramdisk is empty/],
    [{ ...PARTS, ramdisks: Array.from({ length: 30 }, () => Buffer.from('x')) }, /too many/],
  ])('is not made from invalid parts (%#)', (parts, message) => {
    expect(() => writeEif(parts, METADATA)).toThrow(message);
  });

  test('may be signed, which the reader reports', () => {
    const eif = writeEif(PARTS, METADATA);
    const header = Buffer.alloc(12);
    header.writeUInt16BE(4, 0);
    header.writeBigUInt64BE(3n, 4);
    const signed = Buffer.concat([eif, header, Buffer.from('sig')]);
    signed.writeUInt16BE(6, 26);
    signed.writeBigUInt64BE(BigInt(eif.length), 28 + 8 * 5);
    signed.writeBigUInt64BE(3n, 284 + 8 * 5);
    signed.writeUInt32BE(crc32(signed.subarray(548), crc32(signed.subarray(0, 544))), 544);
    expect(readEif(signed).signature).toEqual(Buffer.from('sig'));
  });
});

describe('the metadata', () => {
  const DOCKER = {
    Id: `sha256:${'5'.repeat(64)}`,
    RepoTags: ['hello:latest'],
    Config: { Env: ['PATH=/bin'], Cmd: ['/bin/hello.sh'], Labels: null },
    Size: 4_123_456,
  };
  const readBack = (metadata: object) => readEif(writeEif(PARTS, { ...METADATA, ...metadata })).metadata;

  test.each<[string, object]>([
    ['what nitro-cli writes about a Docker image', { DockerInfo: DOCKER }],
    [
      "custom metadata of nitro-cli's user",
      { DockerInfo: DOCKER, CustomMetadata: [{ team: 'a' }, 1, 'b', false] },
    ],
    ['32 levels', { DockerInfo: JSON.parse(`${'[{"a":'.repeat(16)}0${'}]'.repeat(16)}`) }],
  ])('may contain %s', (_what, metadata) => {
    expect(readBack(metadata)).toEqual({ ...METADATA, ...metadata });
  });

  test.each<[string, object, RegExp]>([
    ['33 levels', { DockerInfo: JSON.parse('['.repeat(33) + ']'.repeat(33)) }, /metadata's DockerInfo/],
    ['a mebibyte', { CustomMetadata: 'x'.repeat(1024 ** 2) }, /more than 1048576 bytes/],
    ['no DockerInfo', { DockerInfo: undefined }, /metadata's DockerInfo/],
    ['a number for a name', { ImageName: 1 }, /metadata's ImageName/],
  ])('are refused with %s', (_what, metadata, message) => {
    expect(() => readBack(metadata)).toThrow(message);
  });

  test('are refused with 20,000 levels, which no reader could print', () => {
    const levels = 20_000;
    const text = JSON.stringify(METADATA).replace('null', '['.repeat(levels) + ']'.repeat(levels));
    // The writer can't print these levels either.
    vi.spyOn(JSON, 'stringify').mockReturnValueOnce(text);
    expect(() => readEif(writeEif(PARTS, METADATA))).toThrow(/metadata's DockerInfo/);
  });
});

describe('the registers', () => {
  const sha384 = (text: string) => createHash('sha384').update(text, 'latin1').digest().toString('latin1');
  const extend = (text: string) =>
    Buffer.from(sha384('\0'.repeat(48) + sha384(text)), 'latin1').toString('hex');

  test('cover kernel, command line and ramdisks as Nitro does', () => {
    expect(measureImage(PARTS)).toEqual({
      pcr0: extend('kernelconsole=ttyS0bootapp'),
      pcr1: extend('kernelconsole=ttyS0boot'),
      pcr2: extend('app'),
    });
  });

  test('PCR2 covers all ramdisks after the first', () => {
    const ramdisks = ['boot', 'app', 'more'].map((name) => Buffer.from(name));
    expect(measureImage({ ...PARTS, ramdisks }).pcr2).toBe(extend('appmore'));
  });

  test('are printed one per line', () => {
    expect(formatPcrs({ pcr0: 'aa', pcr1: 'bb', pcr2: 'cc' })).toBe('aa PCR0\nbb PCR1\ncc PCR2\n');
  });
});
