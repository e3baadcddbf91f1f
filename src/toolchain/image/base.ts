/**
 * Makes one tar archive of a root file system from the packages of lock files, without running any of their
 * scripts. The archive consists of the packages' own archives, one after another, and contains nothing from
 * this machine.
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { dataArchive, tarEntries } from './deb.ts';
import { fetchAll } from './fetch.ts';
import { readLock } from './lock.ts';
import { findMirrors, type Mirrors } from './mirrors.ts';

/** Paths that are symbolic links to folders in /usr: an entry below such a path would replace the link. */
const MERGED = /^(bin|sbin|lib|lib64)\//;

export interface BaseOptions {
  /** Tar archives whose files replace those of the packages. */
  readonly overlays?: readonly string[];
  /** Default: the mirrors of this machine. */
  readonly mirrors?: Mirrors;
}

export async function makeBase(
  locks: readonly string[],
  out: string,
  cache: string,
  { overlays = [], mirrors = findMirrors(process.env) }: BaseOptions = {},
): Promise<void> {
  mkdirSync(dirname(out), { recursive: true });
  const packages: { name: string; deb: string }[] = [];
  for (const lock of locks.map(readLock)) {
    const debs = await fetchAll(lock.packages, lock, mirrors, cache);
    // base-files comes first: it has the links to folders in /usr, on which the other packages rely.
    const baseIndex = lock.packages.findIndex(({ name }) => name === 'base-files');
    const order = [...debs.keys()].sort((a, b) => Number(b === baseIndex) - Number(a === baseIndex) || a - b);
    for (const at of order) {
      const { name } = lock.packages[at] as { name: string };
      packages.push({ name, deb: debs[at] as string });
    }
  }
  replaceBy(out, (temporaryFile) => {
    const file = openSync(temporaryFile, 'wx');
    try {
      for (const { name, deb } of packages) writeFileSync(file, readEntries(name, readFileSync(deb)));
      for (const overlay of overlays) writeFileSync(file, removeEnd(readFileSync(overlay)));
      writeFileSync(file, Buffer.alloc(1024));
    } finally {
      closeSync(file);
    }
  });
}

function readEntries(name: string, deb: Buffer): Buffer {
  const tar = dataArchive(deb);
  for (const { path } of tarEntries(tar)) {
    const relativePath = path.replace(/^\.?\/+/, '');
    if (MERGED.test(relativePath) || relativePath.split('/').includes('..')) {
      throw new ImageError('ARCHIVE_INVALID', `the package ${name} holds ${relativePath}, outside /usr`);
    }
  }
  return removeEnd(tar);
}

/** Returns an archive without its trailing empty blocks, so that another archive can follow. */
function removeEnd(tar: Buffer): Buffer {
  return tar.subarray(0, tarEntries(tar).at(-1)?.end ?? 0);
}
