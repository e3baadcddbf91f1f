/**
 * `out/inputs.tar`: every package that an image was built from, by its digest, since mirrors keep versions
 * for weeks only.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { create, extract } from 'tar';

/** Digest of a package in the cache: SHA-256 for Debian's, SHA-512 for npm's. */
const DIGEST = /^(?:[0-9a-f]{64}|[0-9a-f]{128})$/;

/** Mode of each file in the archive, no matter what it is in the cache. */
const MODE = 0o644;

/** @param digests names of files in the cache. The same packages give the same bytes */
export function writeInputs(file: string, cache: string, digests: readonly string[]): void {
  const sorted = [...new Set(digests)].sort();
  replaceBy(file, (fresh) => {
    create(
      {
        sync: true,
        file: fresh,
        cwd: cache,
        portable: true,
        noMtime: true,
        follow: true,
        onWriteEntry({ stat }) {
          if (stat) stat.mode = MODE;
        },
      },
      sorted,
    );
  });
}

/**
 * Puts the packages of an archive into the cache, if each has the digest that it is named by.
 *
 * @throws ConfigError, with the cache as it was, if there is no such archive, or if it is damaged
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
    const damaged = names.find((name) => computeDigest(join(folder, name), name.length) !== name);
    if (damaged !== undefined) throw new Error(`${damaged} has another digest`);
    for (const name of names) renameSync(join(folder, name), join(cache, name));
  } catch (error) {
    const { message } = error as Error;
    throw new ConfigError(
      `--inputs ${file}: it is not an archive of inputs, or is damaged: ${message}. Copy the inputs.tar of the build again`,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param length of the digest in hexadecimal, which tells SHA-256 from SHA-512 */
function computeDigest(file: string, length: number): string {
  const algorithm = length === 64 ? 'sha256' : 'sha512';
  return createHash(algorithm).update(readFileSync(file)).digest('hex');
}
