/** Replaces whole files, so that a reader sees either the old content or the new one. */
import { randomUUID } from 'node:crypto';
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Calls `write` to create a file beside `path`, and renames it to `path`. A link or a special file at `path`
 * is replaced; it is neither followed nor opened.
 *
 * @param write gets a random path, so that other processes can't put a file there beforehand. It must create
 *   the file with `O_EXCL`
 * @throws the errors of `write` and of rename(2), after removing the new file
 */
export function replaceBy(path: string, write: (newPath: string) => void): void {
  const newPath = `${path}.${randomUUID()}`;
  try {
    write(newPath);
    renameSync(newPath, path);
  } catch (error) {
    rmSync(newPath, { force: true });
    throw error;
  }
}

/**
 * Replaces a file by a file with this content.
 *
 * @param mode the exact mode of the file, whatever the umask. Default: 0o666 without the bits of the umask
 * @throws as `replaceBy`
 */
export function replaceFile(path: string, content: string | Uint8Array, mode?: number): void {
  replaceBy(path, (newPath) => write(newPath, content, mode));
}

/**
 * Does what `replaceFile` does, and returns once the new file is on the disk, where it survives a loss of
 * power. Takes a few milliseconds.
 *
 * @throws as `replaceBy`, and the errors of fsync(2)
 */
export function replaceFileDurably(path: string, content: string | Uint8Array, mode?: number): void {
  replaceBy(path, (newPath) => write(newPath, content, mode, fsyncSync));
  // The renaming changed the folder, which must reach the disk too.
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function write(
  path: string,
  content: string | Uint8Array,
  mode: number | undefined,
  flush: (file: number) => void = () => {},
): void {
  // The flag `x` is O_EXCL, which follows no link.
  const file = openSync(path, 'wx', mode);
  try {
    if (mode !== undefined) fchmodSync(file, mode);
    writeFileSync(file, content);
    flush(file);
  } finally {
    closeSync(file);
  }
}
