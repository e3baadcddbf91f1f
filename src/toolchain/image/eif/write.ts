import { crc32 } from 'node:zlib';
import {
  CRC_OFFSET,
  checkParts,
  DEFAULT_CPUS,
  DEFAULT_MEMORY,
  HEADER_BYTES,
  type ImageParts,
  MAGIC,
  type Metadata,
  SECTION,
  SECTION_HEADER_BYTES,
  type SectionName,
  VERSION,
} from 'sui-enclave-cli/image/eif/format';
import { ImageError } from 'sui-enclave-cli/image/errors';

/**
 * Returns an unsigned x86-64 image. The same parts and metadata give the same bytes.
 *
 * @throws ImageError: EIF_INVALID
 */
export function writeEif(parts: ImageParts, metadata: Metadata): Buffer {
  checkParts(parts);
  if (Object.values(metadata.BuildMetadata).some((value) => value === '')) {
    throw new ImageError('EIF_INVALID', 'a field of the metadata is empty');
  }
  const sections: [SectionName, Uint8Array][] = [
    ['kernel', parts.kernel],
    ['cmdline', Buffer.from(parts.cmdline)],
    ['metadata', Buffer.from(JSON.stringify(metadata))],
    ...parts.ramdisks.map((ramdisk): [SectionName, Uint8Array] => ['ramdisk', ramdisk]),
  ];
  const header = Buffer.alloc(HEADER_BYTES);
  MAGIC.copy(header);
  header.writeUInt16BE(VERSION, 4);
  header.writeBigUInt64BE(DEFAULT_MEMORY, 8);
  header.writeBigUInt64BE(DEFAULT_CPUS, 16);
  header.writeUInt16BE(sections.length, 26);
  const pieces: Uint8Array[] = [];
  let offset = HEADER_BYTES;
  for (const [at, [name, data]] of sections.entries()) {
    header.writeBigUInt64BE(BigInt(offset), 28 + 8 * at);
    header.writeBigUInt64BE(BigInt(data.length), 284 + 8 * at);
    const sectionHeader = Buffer.alloc(SECTION_HEADER_BYTES);
    sectionHeader.writeUInt16BE(SECTION[name], 0);
    sectionHeader.writeBigUInt64BE(BigInt(data.length), 4);
    pieces.push(sectionHeader, data);
    offset += SECTION_HEADER_BYTES + data.length;
  }
  let crc = crc32(header.subarray(0, CRC_OFFSET));
  for (const piece of pieces) crc = crc32(piece, crc);
  header.writeUInt32BE(crc, CRC_OFFSET);
  return Buffer.concat([header, ...pieces]);
}
