/**
 * Fetches npm packages into the cache by the integrity in a lock file, and unpacks them. Never runs the
 * scripts of a package.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { extract } from 'tar';
import { fetchLocked, type NpmPackage, type NpmRegistry, packageChanged } from './npm_registry.ts';

/** @throws ImageError: LOCK_INVALID for a package without the SHA-512 of its bytes in the lock file */
export function toNpmPackage(
  path: string,
  { name, version, integrity }: { name?: string; version?: string; integrity?: string },
): NpmPackage {
  const digest = /^sha512-([A-Za-z0-9+/]{86}==)$/.exec(integrity ?? '')?.[1];
  if (digest === undefined || version === undefined) {
    throw new ImageError('LOCK_INVALID', `package-lock.json has no SHA-512 of ${path}`);
  }
  const sha512 = Buffer.from(digest, 'base64').toString('hex');
  return { name: name ?? path.slice(path.lastIndexOf('node_modules/') + 13), version, sha512 };
}

/**
 * Fetches the packages that the cache lacks.
 *
 * @param isOffline whether only the cache may be used
 * @param registry registry to fetch from. By default, npm uses and signs in to the registry of its settings
 * @returns the packages that are neither in the cache nor downloadable
 * @throws ImageError: PACKAGE_CHANGED; LOCK_INVALID
 */
export async function fetchPackages(
  packages: readonly NpmPackage[],
  cache: string,
  isOffline: boolean,
  registry?: NpmRegistry,
): Promise<NpmPackage[]> {
  mkdirSync(cache, { recursive: true });
  const missing = packages.filter((npmPackage) => !isCached(npmPackage, cache));
  if (missing.length === 0 || isOffline) return missing;
  const unobtainable =
    registry === undefined ? packByNpm(missing, cache) : await fetchLocked(missing, cache, registry);
  if (unobtainable.length > 0) return [...unobtainable];
  const changedPackage = missing.find((npmPackage) => !isCached(npmPackage, cache));
  if (changedPackage !== undefined) throw packageChanged(changedPackage);
  return [];
}

/** @returns an empty list, or all packages if npm fails */
function packByNpm(packages: readonly NpmPackage[], cache: string): readonly NpmPackage[] {
  const folder = mkdtempSync(join(tmpdir(), 'npm-pack-'));
  try {
    const names = new Set(packages.map(({ name, version }) => `${name}@${version}`));
    const options = ['--ignore-scripts', '--silent', '--pack-destination', folder];
    execFileSync('npm', ['pack', ...options, ...names], { cwd: folder, stdio: ['ignore', 'ignore', 2] });
    for (const file of readdirSync(folder)) {
      const path = join(folder, file);
      replaceBy(join(cache, computeDigest(path)), (temporary) =>
        copyFileSync(path, temporary, constants.COPYFILE_EXCL),
      );
    }
    return [];
  } catch {
    return packages;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Returns whether the cache has the package. Computes the digest each time, since the cache may have changed
 * after the package was written.
 */
function isCached({ sha512 }: NpmPackage, cache: string): boolean {
  const path = join(cache, sha512);
  return existsSync(path) && computeDigest(path) === sha512;
}

function computeDigest(path: string): string {
  return createHash('sha512').update(readFileSync(path)).digest('hex');
}

/** Maximum size of an unpacked package in bytes, several times the size of the largest package in use. */
const MAX_PACKAGE_BYTES = 1_000_000_000;

/**
 * Unpacks the files of a package from the cache into a folder, in the same way as npm.
 *
 * @throws ImageError: ARCHIVE_INVALID
 */
export function unpackPackage({ name, sha512 }: NpmPackage, cache: string, to: string): void {
  mkdirSync(to, { recursive: true });
  let bytes = 0;
  extract({
    sync: true,
    file: join(cache, sha512),
    cwd: to,
    strip: 1,
    filter(_path, entry) {
      if (!('type' in entry)) return true;
      bytes += entry.size ?? 0;
      if (bytes > MAX_PACKAGE_BYTES) {
        throw new ImageError('ARCHIVE_INVALID', `${name} of npm has more than ${MAX_PACKAGE_BYTES} bytes`);
      }
      return !/Link$/.test(entry.type);
    },
  });
}
