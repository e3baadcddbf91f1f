/**
 * Reads and writes `out/inputs.tar`, which has every package that an image was built from, under its digest.
 * The archive is needed because mirrors keep a version only for weeks.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { create, extract } from 'tar';

/** Digest by which the cache names a package: SHA-256 for Debian packages, SHA-512 for npm packages. */
const DIGEST = /^(?:[0-9a-f]{64}|[0-9a-f]{128})$/;

/** Mode of each file in the archive, whatever its mode in the cache. */
const MODE = 0o644;

/**
 * Writes the archive. The same packages give the same bytes.
 *
 * @param digests names of the packages' files in the cache
 */
export function writeInputs(file: string, cache: string, digests: readonly string[]): void {
  const sorted = [...new Set(digests)].sort();
  replaceBy(file, (temporary) => {
    create(
      {
        sync: true,
        file: temporary,
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
 * Puts the packages of an archive into the cache, if the digest of each matches its name.
 *
 * @throws ConfigError, with the cache unchanged, if the archive is missing or damaged
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

/** @param length number of the digest's hexadecimal digits: 64 for SHA-256, 128 for SHA-512 */
function computeDigest(file: string, length: number): string {
  const algorithm = length === 64 ? 'sha256' : 'sha512';
  return createHash(algorithm).update(readFileSync(file)).digest('hex');
}
