/**
 * The releases of `move/enclave` and `move/feed`. Any other package with these names on chain comes from a
 * stranger.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENCLAVE_PACKAGE } from '../places.ts';
import type { Modules } from './compile.ts';

/**
 * A release. Its modules determine its tables on chain: it links only to Sui's framework, and each of its
 * types has the id of the version that introduced the type.
 */
export interface Release {
  /** Name of the release, such as `0.1.0`. */
  readonly name: string;
  /** Value of the constant PACKAGE_VERSION in the release. */
  readonly packageVersion: bigint;
  /**
   * SHA-256 of each module by name, compiled against Sui's framework, with zeros instead of the package's id.
   */
  readonly modules: Readonly<Record<string, string>>;
  /** SHA-256 of each module of `move/feed` by name, compiled as a part of the same package. */
  readonly feed: Readonly<Record<string, string>>;
}

/** Releases before this program's; none so far. */
export const RELEASES: readonly Release[] = [];

/** Returns the release of this program, made from the compiled modules of `enclave` and of `feed`. */
export function ownRelease(name: string, enclave: Modules, feed: Modules): Release {
  return {
    name,
    packageVersion: readPackageVersion(),
    modules: hashModules(enclave),
    feed: hashModules(feed),
  };
}

function hashModules(modules: Modules): Readonly<Record<string, string>> {
  const digests = [...modules].map(([module, bytes]): [string, string] => [module, sha256(bytes)]);
  return Object.fromEntries(digests.sort());
}

function readPackageVersion(): bigint {
  const text = readFileSync(join(ENCLAVE_PACKAGE, 'sources/enclave.move'), 'utf8');
  const [, version] = /^const PACKAGE_VERSION: u64 = (\d+);$/m.exec(text) ?? [];
  if (version === undefined) throw new Error('move/enclave does not declare PACKAGE_VERSION');
  return BigInt(version);
}

/**
 * Returns the release whose modules are all in the package. The package's other modules can't call internal
 * functions of the release, because the release's modules name their friends.
 */
export function releaseIn(modules: Modules, releases: readonly Release[]): Release | undefined {
  return releases.find((release) => hasModules(modules, release.modules));
}

/** Returns the names of a release's `feed` modules if a package has all of them; otherwise no names. */
export function feedModulesIn(modules: Modules, releases: readonly Release[]): string[] {
  return Object.keys(releases.find(({ feed }) => hasModules(modules, feed))?.feed ?? {});
}

function hasModules(modules: Modules, digests: Readonly<Record<string, string>>): boolean {
  return Object.entries(digests).every(([name, digest]) => {
    const bytes = modules.get(name);
    return bytes !== undefined && sha256(bytes) === digest;
  });
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
