/**
 * Fetches the packages of an author's lock file from a registry, by name, version and SHA-512 alone. The
 * addresses in the lock file are ignored, and no code of the packages runs.
 */
import { join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { replaceFile } from 'sui-enclave-service/replace_file';

/** A package of npm, as lock files name it. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SHA-512 in hexadecimal, by which the cache names the package. */
  readonly sha512: string;
}

/** The builder's registry, without the settings and tokens of the builder's npm. */
export interface NpmRegistry {
  readonly url: string;
  /** Empty folder for files that pacote stores. */
  readonly folder: string;
}

/** The part of pacote that this module uses. pacote declares no types. */
interface Pacote {
  /**
   * Asks a registry, whatever the kind of the specifier. `pacote.tarball` would run scripts for specifiers of
   * git repositories and folders.
   */
  readonly RegistryFetcher: new (
    specifier: string,
    options: object,
  ) => { tarball(): Promise<Uint8Array> };
}

const NAME = /^(?:@[a-z0-9][a-z0-9._-]*\/)?[A-Za-z0-9][A-Za-z0-9._-]*$/;
const VERSION = /^\d{1,10}\.\d{1,10}\.\d{1,10}(?:-[0-9A-Za-z.-]{1,100})?(?:\+[0-9A-Za-z.-]{1,100})?$/;

const MAX_DOWNLOADS = 8;
const TIMEOUT_MS = 300_000;
/** Settings for retries after a failure of the network or of the registry. Times are in milliseconds. */
const RETRY = { retries: 2, minTimeout: 500, factor: 2 };

/**
 * Fetches packages into the cache.
 *
 * @param cache folder of packages, whose files are named by digest and always complete
 * @returns the packages that could not be fetched
 * @throws ImageError: LOCK_INVALID for a version that no registry can have; PACKAGE_CHANGED
 */
export async function fetchLocked(
  packages: readonly NpmPackage[],
  cache: string,
  registry: NpmRegistry,
): Promise<NpmPackage[]> {
  for (const { name, version } of packages) {
    if (NAME.test(name) && VERSION.test(version)) continue;
    throw new ImageError(
      'LOCK_INVALID',
      `package-lock.json has ${name} ${version}, which is not a version of a registry`,
    );
  }
  // @ts-expect-error: pacote declares no types. It is loaded here, since only audits need its 80 packages
  const { default: pacote }: { default: Pacote } = await import('pacote');
  const missingPackages: NpmPackage[] = [];
  const changedPackages: NpmPackage[] = [];
  const waiting = [...packages];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      try {
        replaceFile(join(cache, next.sha512), await fetchTarball(pacote, next, registry));
      } catch (error) {
        const { code } = error as { readonly code?: unknown };
        (code === 'EINTEGRITY' ? changedPackages : missingPackages).push(next);
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_DOWNLOADS }, work));
  const [changedPackage] = changedPackages;
  if (changedPackage !== undefined) throw packageChanged(changedPackage);
  return packages.filter((npmPackage) => missingPackages.includes(npmPackage));
}

/** @throws Error, with the code EINTEGRITY if the registry states another digest or sends other bytes */
async function fetchTarball(
  { RegistryFetcher }: Pacote,
  { name, version, sha512 }: NpmPackage,
  { url, folder }: NpmRegistry,
): Promise<Uint8Array> {
  const integrity = `sha512-${Buffer.from(sha512, 'hex').toString('base64')}`;
  const options = { registry: url, cache: folder, integrity, timeout: TIMEOUT_MS, retry: RETRY };
  return await new RegistryFetcher(`${name}@${version}`, options).tarball();
}

export function packageChanged({ name, version }: NpmPackage): ImageError {
  return new ImageError(
    'PACKAGE_CHANGED',
    `${name} ${version} of npm is not the package of the lock: its SHA-512 differs`,
  );
}
