/** Reads Debian packages (deb(5), an ar archive) and the tar archive in them. */
import { spawnSync } from 'node:child_process';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { ImageError } from 'sui-enclave-cli/image/errors';

const BLOCK = 512;
const MAX_DATA_BYTES = 2 ** 31;

/** Returns the files of a package as an uncompressed tar archive. */
export function dataArchive(deb: Buffer): Buffer {
  if (deb.toString('latin1', 0, 8) !== '!<arch>\n')
    throw new ImageError('ARCHIVE_INVALID', 'a package is not an ar archive');
  for (let at = 8; at + 60 <= deb.length; ) {
    const name = deb
      .toString('latin1', at, at + 16)
      .trimEnd()
      .replace(/\/$/, '');
    const digits = deb.toString('latin1', at + 48, at + 58).trimEnd();
    const size = /^\d+$/.test(digits) ? Number(digits) : Number.NaN;
    const data = deb.subarray(at + 60, at + 60 + size);
    if (data.length !== size || deb.toString('latin1', at + 58, at + 60) !== '`\n') {
      throw new ImageError(
        'ARCHIVE_INVALID',
        `a package is damaged or incomplete at ${JSON.stringify(name)}`,
      );
    }
    if (name.startsWith('data.tar')) return decompress(name, data);
    at += 60 + size + (size % 2);
  }
  throw new ImageError('ARCHIVE_INVALID', 'a package has no data.tar');
}

function decompress(name: string, data: Buffer): Buffer {
  switch (name) {
    case 'data.tar':
      return data;
    case 'data.tar.gz':
      return gunzipSync(data, { maxOutputLength: MAX_DATA_BYTES });
    case 'data.tar.zst':
      return zstdDecompressSync(data, { maxOutputLength: MAX_DATA_BYTES });
    case 'data.tar.xz':
      return decompressXz(data);
    default:
      throw new ImageError('ARCHIVE_INVALID', `a package's ${name} is compressed in an unknown way`);
  }
}

/** Decompresses with the program `xz`, since Node can't decompress this format. */
function decompressXz(data: Buffer): Buffer {
  const { status, stdout, error } = spawnSync('xz', ['-dc'], { input: data, maxBuffer: MAX_DATA_BYTES });
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
    throw new ImageError('COMMAND_FAILED', "xz is not installed: install Debian's package xz-utils");
  }
  if (error || status !== 0)
    throw new ImageError('ARCHIVE_INVALID', "a package's data.tar.xz can't be decompressed");
  return stdout;
}

export interface TarEntry {
  readonly path: string;
  /** Offset and size of the content, in bytes. */
  readonly start: number;
  readonly size: number;
  /** Offset of the byte after the entry, padding included. */
  readonly end: number;
}

/** Returns the entries of a tar archive with their names. Extended headers are separate entries here. */
export function tarEntries(tar: Buffer): TarEntry[] {
  const entries: TarEntry[] = [];
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header[0] === 0) return entries;
    let sum = 0;
    for (let i = 0; i < BLOCK; i += 1) sum += i >= 148 && i < 156 ? 0x20 : (header[i] as number);
    const size = octal(header.subarray(124, 136));
    const end = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    if (sum !== octal(header.subarray(148, 156)) || end > tar.length) {
      throw new ImageError('ARCHIVE_INVALID', 'a tar archive is damaged');
    }
    const prefix =
      header.toString('latin1', 257, 262) === 'ustar' && header[262] === 0 ? text(header, 345, 500) : '';
    const type = String.fromCharCode(header[156] as number);
    const previousEntry = entries.at(-1) as (TarEntry & { longName?: string }) | undefined;
    const path = previousEntry?.longName ?? (prefix ? `${prefix}/` : '') + text(header, 0, 100);
    const entry = { path, start: at + BLOCK, size, end };
    // This is a GNU header, whose content is the name of the next entry.
    if (type === 'L') Object.assign(entry, { path: '', longName: text(tar, at + BLOCK, at + BLOCK + size) });
    entries.push(entry);
    at = end;
  }
  throw new ImageError('ARCHIVE_INVALID', 'a tar archive lacks the block of zeros that ends it');
}

/** @throws ImageError: ARCHIVE_INVALID, also if the archive has no such file */
export function readTarFile(tar: Buffer, path: string): Buffer {
  const entry = tarEntries(tar).find((tarEntry) => tarEntry.path === path);
  if (!entry) throw new ImageError('ARCHIVE_INVALID', `a package has no ${path}`);
  return tar.subarray(entry.start, entry.start + entry.size);
}

function text(bytes: Buffer, from: number, to: number): string {
  const end = bytes.indexOf(0, from);
  return bytes.toString('utf8', from, end === -1 || end > to ? to : end);
}

function octal(field: Buffer): number {
  const digits = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]+$/.test(digits))
    throw new ImageError('ARCHIVE_INVALID', 'a tar archive has a number that is not octal');
  return Number.parseInt(digits, 8);
}
