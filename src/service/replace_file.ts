/** Replaces whole files, so that a reader sees either the old content or the new one. */
import { randomUUID } from 'node:crypto';
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Has `write` make a file beside this one, and moves it to this path. A link or a special file at this path
 * is replaced, and neither followed nor opened.
 *
 * @param write gets a random path, so that nobody can put anything there beforehand. It must make a new file:
 *   `O_EXCL`
 * @throws the errors of `write` and of rename(2), after removing the new file
 */
export function replaceBy(path: string, write: (fresh: string) => void): void {
  const fresh = `${path}.${randomUUID()}`;
  try {
    write(fresh);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

/**
 * @param mode the exact mode of the file, whatever the umask. Default: 0o666 without the bits of the umask
 * @throws as `replaceBy`
 */
export function replaceFile(path: string, content: string | Uint8Array, mode?: number): void {
  replaceBy(path, (fresh) => write(fresh, content, mode));
}

/**
 * Does what `replaceFile` does, and returns once the disk has the content: after a loss of power, the file is
 * still the new one. Takes a few milliseconds.
 *
 * @throws as `replaceBy`, and the errors of fsync(2)
 */
export function replaceFileDurably(path: string, content: string | Uint8Array, mode?: number): void {
  replaceBy(path, (fresh) => write(fresh, content, mode, fsyncSync));
  // The new name is in the folder.
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
