/**
 * Writes and reads the archives that Linux unpacks into memory at boot (cpio, "newc"). The same tree always
 * results in the same bytes.
 */
import { ImageError } from './errors.ts';

export interface CpioEntry {
  /** Relative path, without a leading slash. */
  readonly path: string;
  /** Type and permissions, as stat(2) has them. */
  readonly mode: number;
  /** Content of a file; empty for a directory. */
  readonly data: Uint8Array;
}

const MAGIC = '070701';
const HEADER_BYTES = 110;
const DIRECTORY = 0o040755;
const TRAILER = 'TRAILER!!!';

/** Writes an archive. @param files content and permissions by path. The folders above the files are added */
export function writeCpio(
  files: ReadonlyMap<string, { data: Uint8Array; executable?: boolean }>,
  folders: readonly string[] = [],
): Buffer {
  const entries = new Map<string, CpioEntry>();
  const addFolder = (path: string) => {
    const parts = path.split('/');
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const folder = parts.slice(0, depth).join('/');
      entries.set(folder, { path: folder, mode: DIRECTORY, data: Buffer.alloc(0) });
    }
  };
  for (const folder of folders) addFolder(folder);
  for (const [path, { data, executable }] of files) {
    if (path.includes('/')) addFolder(path.slice(0, path.lastIndexOf('/')));
    entries.set(path, { path, mode: executable ? 0o100755 : 0o100644, data });
  }
  const sorted = [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  const pieces = sorted.flatMap((entry, at) => encode(entry, at + 1));
  return Buffer.concat([...pieces, ...encode({ path: TRAILER, mode: 0, data: Buffer.alloc(0) }, 0)]);
}

/**
 * Encodes an entry without owner, time or device, so that it doesn't depend on the machine that writes it.
 */
function encode({ path, mode, data }: CpioEntry, inode: number): Uint8Array[] {
  if (!/^[\x21-\x7e]+$/.test(path) || path.startsWith('/') || path.split('/').includes('..')) {
    throw new ImageError('ARCHIVE_INVALID', `${JSON.stringify(path)} can't be a path in a ramdisk`);
  }
  const links = mode === DIRECTORY ? 2 : 1;
  const fields = [inode, mode, 0, 0, links, 0, data.length, 0, 0, 0, 0, path.length + 1, 0];
  const header = MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [padToFourBytes(Buffer.from(`${header}${path}\0`)), padToFourBytes(data)];
}

function padToFourBytes(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}

/** Returns whether an entry of this mode is a regular file. */
export const isFile = (mode: number) => (mode & 0o170000) === 0o100000;

/**
 * Reads an archive.
 *
 * @throws ImageError: ARCHIVE_INVALID, for an archive that is damaged or is followed by other bytes
 */
export function readCpio(archive: Buffer): CpioEntry[] {
  const entries: CpioEntry[] = [];
  for (let at = 0; at + HEADER_BYTES <= archive.length; ) {
    const header = archive.toString('latin1', at, at + HEADER_BYTES);
    if (!/^070701[0-9a-f]{104}$/i.test(header))
      throw new ImageError('ARCHIVE_INVALID', 'a ramdisk has a damaged header');
    const field = (index: number) => Number.parseInt(header.slice(6 + 8 * index, 14 + 8 * index), 16);
    const nameEnd = at + HEADER_BYTES + field(11);
    const start = alignToFourBytes(nameEnd);
    const end = start + field(6);
    if (alignToFourBytes(end) > archive.length || archive[nameEnd - 1] !== 0) {
      throw new ImageError('ARCHIVE_INVALID', 'a ramdisk is cut short');
    }
    const path = archive.toString('latin1', at + HEADER_BYTES, nameEnd - 1);
    at = alignToFourBytes(end);
    if (path === TRAILER) {
      if (at !== archive.length) throw new ImageError('ARCHIVE_INVALID', 'a ramdisk has bytes after its end');
      return entries;
    }
    entries.push({ path, mode: field(1), data: archive.subarray(start, end) });
  }
  throw new ImageError('ARCHIVE_INVALID', 'a ramdisk has no end');
}

function alignToFourBytes(offset: number): number {
  return Math.ceil(offset / 4) * 4;
}
