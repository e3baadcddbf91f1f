/** `out/inputs.tar`: every package that an image was built from, by its digest, since mirrors keep versions for weeks only. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { create, extract } from 'tar';

/** Of a package in the cache: SHA-256 for Debian's, SHA-512 for npm's. */
const DIGEST = /^(?:[0-9a-f]{64}|[0-9a-f]{128})$/;

/** @param digests names of files in the cache. The same packages give the same bytes */
export function writeInputs(file: string, cache: string, digests: readonly string[]): void {
  const sorted = [...new Set(digests)].sort();
  create({ sync: true, file: `${file}.new`, cwd: cache, portable: true, noMtime: true }, sorted);
  renameSync(`${file}.new`, file);
}

/**
 * Puts the packages of an archive into the cache. They are checked when they are used.
 *
 * @throws ConfigError if there is no such archive
 */
export function readInputs(file: string, cache: string): void {
  if (!existsSync(file)) throw new ConfigError(`--inputs ${file}: there is no such file`);
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'inputs-'));
  const names: string[] = [];
  try {
    extract({
      sync: true,
      file,
      cwd: folder,
      strict: true,
      filter: (path, entry) => DIGEST.test(path) && 'type' in entry && entry.type === 'File',
      onReadEntry: ({ path }) => void names.push(path),
    });
    for (const name of names) renameSync(join(folder, name), join(cache, name));
  } catch (error) {
    throw new ConfigError(`--inputs ${file}: it is no archive of inputs: ${(error as Error).message}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
