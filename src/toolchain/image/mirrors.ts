/**
 * Finds the mirrors of Debian packages in environment variables or in the settings of the machine's apt. This
 * module names no host.
 */
import { execFileSync } from 'node:child_process';
import { ImageError } from 'sui-enclave-cli/image/errors';
import type { LockedFile } from './lock.ts';

export type Archive = LockedFile['archive'];

export interface Mirrors {
  /** Addresses of each archive's mirrors in order of preference, without a trailing slash. */
  readonly archives: Readonly<Record<Archive, readonly string[]>>;
  /** Address of a snapshot archive, to which `/archive/debian/<time>/` is appended. */
  readonly snapshot: string | undefined;
  /** Whether a build uses only the cache. */
  readonly isOffline?: boolean;
}

/** Mirrors for a build that needs only npm packages. */
export const NO_MIRRORS: Mirrors = { archives: { debian: [], 'debian-security': [] }, snapshot: undefined };
/** Mirrors for a build from an archive of its inputs. */
export const OFFLINE: Mirrors = { ...NO_MIRRORS, isOffline: true };

/**
 * Finds the mirrors by `DEBIAN_MIRROR` (the address above `/debian` and `/debian-security`), or else by the
 * settings of this machine's apt. Finds the snapshot archive by `DEBIAN_SNAPSHOT`.
 *
 * @throws ImageError: NO_MIRROR, if a variable is not an address, or if nothing names a mirror
 */
export function findMirrors(env: NodeJS.ProcessEnv, fromApt = readAptSources): Mirrors {
  const mirror = address(env, 'DEBIAN_MIRROR');
  const snapshot = address(env, 'DEBIAN_SNAPSHOT');
  const archives = mirror
    ? { debian: [`${mirror}/debian`], 'debian-security': [`${mirror}/debian-security`] }
    : parseAptSources(fromApt());
  if (archives.debian.length === 0 && snapshot === undefined) {
    throw new ImageError(
      'NO_MIRROR',
      "this machine's apt names no mirror of Debian: set DEBIAN_MIRROR to the address of a mirror, without its /debian and /debian-security, or DEBIAN_SNAPSHOT to the address of a snapshot archive",
    );
  }
  return { archives, snapshot };
}

function address(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = env[name];
  if (value === undefined || value === '') return undefined;
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new ImageError('NO_MIRROR', `${name} must be an address that begins with http:// or https://`);
  }
  return value.replace(/\/+$/, '');
}

/**
 * Returns a line `<origin> <address>` for each package list that apt knows; an empty string if apt is not
 * installed.
 */
function readAptSources(): string {
  const format = ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)', 'Created-By: Packages'];
  try {
    return execFileSync('apt-get', format, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return '';
  }
}

function parseAptSources(lines: string): Record<Archive, string[]> {
  const archives: Record<Archive, string[]> = { debian: [], 'debian-security': [] };
  for (const line of new Set(lines.split('\n'))) {
    const [, uri, archive] = /^Debian (https?:\/\/\S+\/(debian|debian-security))\/?$/.exec(line) ?? [];
    if (uri !== undefined) archives[archive as Archive].push(uri);
  }
  return archives;
}
