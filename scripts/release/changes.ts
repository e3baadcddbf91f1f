/** Writes a new version into the texts of package.json files, lockfiles and the changelog. */
import { ConfigError } from '../../src/library/errors.ts';
import { DEPENDENCY_FIELDS } from '../check/versions.ts';

/** Change of the version of packages. */
export interface Bump {
  /** Names of the packages whose version changes. */
  readonly names: ReadonlySet<string>;
  readonly from: string;
  readonly to: string;
}

/** A package.json, or an entry of a lockfile. */
type Entry = Record<string, unknown> & { name?: string; version?: string };

const VERSION = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;

/** Returns whether a version has the form of a release's: three numbers, without a suffix. */
export function isReleaseVersion(version: string): boolean {
  return VERSION.test(version);
}

/** Returns whether a release's version is newer than another release's. */
export function isNewer(version: string, reference: string): boolean {
  return version.localeCompare(reference, 'en', { numeric: true }) > 0;
}

/** Returns a package.json in which the packages of the bump have the new version. */
export function bumpManifest(text: string, bump: Bump): string {
  const manifest: Entry = JSON.parse(text);
  bumpEntry(manifest, manifest.name, bump);
  return format(manifest);
}

/** Returns a package-lock.json in which the packages of the bump have the new version. */
export function bumpLock(text: string, bump: Bump): string {
  const lock: Entry & { packages?: Record<string, Entry> } = JSON.parse(text);
  bumpEntry(lock, lock.name, bump);
  for (const [path, entry] of Object.entries(lock.packages ?? {})) {
    bumpEntry(entry, entry.name ?? path.split('node_modules/').at(-1), bump);
  }
  return format(lock);
}

function bumpEntry(entry: Entry, name: string | undefined, { names, from, to }: Bump): void {
  if (names.has(name ?? '') && entry.version === from) entry.version = to;
  for (const field of DEPENDENCY_FIELDS) {
    const dependencies = entry[field] as Record<string, string> | undefined;
    for (const dependency of Object.keys(dependencies ?? {})) {
      if (dependencies && names.has(dependency) && dependencies[dependency] === from) {
        dependencies[dependency] = to;
      }
    }
  }
}

const format = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

const UNRELEASED = '## Unreleased';

/**
 * Returns the changelog with a heading of this version above the entries that were unreleased.
 *
 * @param date such as 2026-01-31
 * @throws ConfigError if the unreleased part is missing or empty, or if the version has a heading
 */
export function bumpChangelog(text: string, version: string, date: string): string {
  const lines = text.split('\n');
  const start = lines.indexOf(UNRELEASED);
  if (start === -1) throw new ConfigError(`CHANGELOG.md has no heading "${UNRELEASED}"`);
  const heading = lines.find((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
  if (heading !== undefined) throw new ConfigError(`CHANGELOG.md has "${heading}": choose a newer version`);
  const next = lines.findIndex((line, index) => index > start && line.startsWith('## '));
  const unreleased = lines.slice(start + 1, next === -1 ? undefined : next);
  if (unreleased.every((line) => line.trim() === '' || line.startsWith('#'))) {
    throw new ConfigError(`CHANGELOG.md has nothing below "${UNRELEASED}": write what has changed`);
  }
  return [...lines.slice(0, start + 1), '', `## ${version} (${date})`, ...lines.slice(start + 1)].join('\n');
}
