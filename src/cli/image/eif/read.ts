import { crc32 } from 'node:zlib';
import * as v from 'valibot';
import { ImageError } from '../errors.ts';
import {
  CRC_OFFSET,
  checkParts,
  HEADER_BYTES,
  type ImageParts,
  MAGIC,
  MAX_SECTIONS,
  type Metadata,
  SECTION,
  SECTION_HEADER_BYTES,
  type SectionName,
  VERSION,
} from './format.ts';

export interface Eif extends ImageParts {
  readonly architecture: 'x86_64' | 'arm64';
  readonly defaultMemory: bigint;
  readonly defaultCpus: bigint;
  readonly metadata: Metadata;
  /** The raw signature section, not verified; undefined in an unsigned image. */
  readonly signature: Uint8Array | undefined;
}

/**
 * Maximum size of the metadata in bytes, far more than Docker's description of an image and the 4 KiB that
 * nitro-cli allows for a user's file.
 */
const MAX_METADATA_BYTES = 1024 ** 2;
/**
 * Maximum nesting of lists and objects. JSON.stringify and other printers fail at several thousand levels.
 */
const MAX_DEPTH = 32;

const anyJson = v.custom<unknown>((value) => isWithin(value, MAX_DEPTH));

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(part, depth - 1));
}

const MetadataJson = v.object({
  ImageName: v.string(),
  ImageVersion: v.string(),
  BuildMetadata: v.object({
    BuildTime: v.string(),
    BuildTool: v.string(),
    BuildToolVersion: v.string(),
    OperatingSystem: v.string(),
    KernelVersion: v.string(),
  }),
  DockerInfo: anyJson,
  CustomMetadata: anyJson,
});

/**
 * Reads an image and checks every byte of its structure.
 *
 * @throws ImageError: EIF_INVALID. The message names the first fault
 */
export function readEif(bytes: Uint8Array): Eif {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.length < HEADER_BYTES) throw new ImageError('EIF_INVALID', 'the file is shorter than the header');
  if (!file.subarray(0, 4).equals(MAGIC))
    throw new ImageError('EIF_INVALID', 'the file does not begin with ".eif"');
  if (file.readUInt16BE(4) !== VERSION) throw new ImageError('EIF_INVALID', `the version is not ${VERSION}`);
  const flags = file.readUInt16BE(6);
  if (flags > 1) throw new ImageError('EIF_INVALID', 'the header has an unknown flag');
  if (file.readUInt16BE(24) !== 0 || file.readUInt32BE(540) !== 0) {
    throw new ImageError('EIF_INVALID', 'a reserved field of the header is not zero');
  }
  const sections = readSections(file);
  const crc = crc32(file.subarray(HEADER_BYTES), crc32(file.subarray(0, CRC_OFFSET)));
  if (file.readUInt32BE(CRC_OFFSET) !== crc)
    throw new ImageError('EIF_INVALID', 'the CRC-32 in the header does not match the file');

  const listData = (name: SectionName) =>
    sections.filter((section) => section.name === name).map(({ data }) => data);
  const order = sections.map(({ name }) => name).join(' ');
  if (!/^kernel cmdline metadata( ramdisk)+( signature)?$/.test(order)) {
    throw new ImageError(
      'EIF_INVALID',
      `the sections are ${order}, not kernel, cmdline, metadata, ramdisks and signature`,
    );
  }
  const [kernel, cmdline, metadata] = sections.map(({ data }) => data) as [Buffer, Buffer, Buffer];
  const parts = { kernel, cmdline: cmdline.toString('latin1'), ramdisks: listData('ramdisk') };
  checkParts(parts);
  return {
    ...parts,
    architecture: flags === 1 ? 'arm64' : 'x86_64',
    defaultMemory: file.readBigUInt64BE(8),
    defaultCpus: file.readBigUInt64BE(16),
    metadata: readMetadata(metadata),
    signature: listData('signature')[0],
  };
}

function readSections(file: Buffer): { name: SectionName; data: Buffer }[] {
  const count = file.readUInt16BE(26);
  if (count < 1 || count > MAX_SECTIONS)
    throw new ImageError('EIF_INVALID', `the number of sections is ${count}`);
  const names = new Map<number, SectionName>(
    Object.entries(SECTION).map(([name, type]) => [type, name as SectionName]),
  );
  const sections: { name: SectionName; data: Buffer }[] = [];
  let offset = HEADER_BYTES;
  for (let at = 0; at < MAX_SECTIONS; at += 1) {
    const statedOffset = file.readBigUInt64BE(28 + 8 * at);
    const size = file.readBigUInt64BE(284 + 8 * at);
    if (at >= count) {
      if (statedOffset !== 0n || size !== 0n)
        throw new ImageError('EIF_INVALID', `section ${at} has an offset or a size, but is not counted`);
      continue;
    }
    // Sections must lie one after the other, since the bytes of a gap are not measured.
    if (statedOffset !== BigInt(offset))
      throw new ImageError('EIF_INVALID', `section ${at} does not begin where the section before it ends`);
    const start = offset + SECTION_HEADER_BYTES;
    if (BigInt(start) + size > BigInt(file.length))
      throw new ImageError('EIF_INVALID', `section ${at} is cut short`);
    const name = names.get(file.readUInt16BE(offset));
    if (name === undefined) throw new ImageError('EIF_INVALID', `section ${at} has an unknown type`);
    if (file.readUInt16BE(offset + 2) !== 0) throw new ImageError('EIF_INVALID', `section ${at} has flags`);
    if (file.readBigUInt64BE(offset + 4) !== size)
      throw new ImageError('EIF_INVALID', `section ${at} has two different sizes`);
    offset = start + Number(size);
    sections.push({ name, data: file.subarray(start, offset) });
  }
  if (offset !== file.length) throw new ImageError('EIF_INVALID', 'there are bytes after the last section');
  return sections;
}

function readMetadata(data: Buffer): Metadata {
  if (data.length > MAX_METADATA_BYTES)
    throw new ImageError('EIF_INVALID', `the metadata has more than ${MAX_METADATA_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch {
    throw new ImageError('EIF_INVALID', 'the metadata is not JSON in UTF-8');
  }
  const parsed = v.safeParse(MetadataJson, value);
  if (!parsed.success) {
    throw new ImageError(
      'EIF_INVALID',
      `the metadata's ${v.getDotPath(parsed.issues[0]) ?? 'top level'} is invalid`,
    );
  }
  return parsed.output;
}
