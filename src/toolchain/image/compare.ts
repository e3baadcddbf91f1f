/**
 * Lists the differences between two images. Locates a difference in a ramdisk by the path of the file, not by
 * the offset in the image.
 */
import { gunzipSync } from 'node:zlib';
import { type CpioEntry, readCpio } from 'sui-enclave-cli/image/cpio';
import { MAX_RAMDISK_BYTES } from 'sui-enclave-cli/image/eif/format';
import { readEif } from 'sui-enclave-cli/image/eif/read';
import { ImageError } from 'sui-enclave-cli/image/errors';

/**
 * Returns a line for each difference; an empty list if the files are identical.
 *
 * @throws ImageError: EIF_INVALID, ARCHIVE_INVALID
 */
export function compareEifs(first: Buffer, second: Buffer): string[] {
  if (first.equals(second)) return [];
  const [a, b] = [readEif(first), readEif(second)];
  const lines: string[] = [];
  if (a.cmdline !== b.cmdline) lines.push(`command line: ${a.cmdline} / ${b.cmdline}`);
  if (Buffer.compare(a.kernel, b.kernel) !== 0)
    lines.push(`kernel: ${describeDifference(a.kernel, b.kernel)}`);
  if (JSON.stringify(a.metadata) !== JSON.stringify(b.metadata)) lines.push('metadata');
  if (a.ramdisks.length !== b.ramdisks.length) lines.push('number of ramdisks');
  for (const [at, ramdisk] of a.ramdisks.entries()) {
    const otherRamdisk = b.ramdisks[at];
    if (!otherRamdisk || Buffer.compare(ramdisk, otherRamdisk) === 0) continue;
    const name = at === 0 ? 'boot ramdisk' : 'application ramdisk';
    const differences = compareRamdisks(unpack(ramdisk), unpack(otherRamdisk));
    // The ramdisks have the same content, but were compressed in different ways.
    if (differences.length === 0) differences.push('its compression');
    for (const line of differences) lines.push(`${name}: ${line}`);
  }
  return lines.length > 0 ? lines : ['header'];
}

/** @throws ImageError: ARCHIVE_INVALID */
function unpack(ramdisk: Uint8Array): Buffer {
  try {
    return gunzipSync(ramdisk, { maxOutputLength: MAX_RAMDISK_BYTES });
  } catch (cause) {
    const limit = `${MAX_RAMDISK_BYTES / 1024 ** 2} MiB`;
    throw new ImageError('ARCHIVE_INVALID', `a ramdisk is not gzip, or has more than ${limit}`, { cause });
  }
}

function compareRamdisks(first: Buffer, second: Buffer): string[] {
  const files = (archive: Buffer) => new Map(readCpio(archive).map((entry) => [entry.path, entry]));
  const [a, b] = [files(first), files(second)];
  const lines = [...new Set([...a.keys(), ...b.keys()])].sort().flatMap((path) => {
    const difference = compareEntries(a.get(path), b.get(path));
    return difference === undefined ? [] : [`/${path}: ${difference}`];
  });
  return lines.length > 0 || first.equals(second) ? lines : ['the order or the headers of its files'];
}

function compareEntries(a: CpioEntry | undefined, b: CpioEntry | undefined): string | undefined {
  if (!a || !b) return `only in the ${a ? 'first' : 'second'}`;
  if (a.mode !== b.mode) return `mode ${a.mode.toString(8)} / ${b.mode.toString(8)}`;
  return Buffer.compare(a.data, b.data) === 0 ? undefined : describeDifference(a.data, b.data);
}

function describeDifference(a: Uint8Array, b: Uint8Array): string {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  const from = at === -1 ? a.length : at;
  return `${a.length} / ${b.length} bytes, different from byte ${from}`;
}
