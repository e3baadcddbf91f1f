/** Changes of a new version in files: package.json files, lockfiles and the changelog. */
import { ConfigError } from '../../src/library/errors.ts';
import { DEPENDENCY_FIELDS } from '../check/versions.ts';

/** A step from a version of the packages to the next one. */
export interface Step {
  /** Names of the packages. */
  readonly names: ReadonlySet<string>;
  readonly from: string;
  readonly to: string;
}

/** A package.json, or an entry of a lockfile. */
type Entry = Record<string, unknown> & { name?: string; version?: string };

const VERSION = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;

/** Returns whether a version is of the form that a release has: three numbers, without a suffix. */
export function isReleaseVersion(version: string): boolean {
  return VERSION.test(version);
}

/** Returns whether a version of a release is newer than another. */
export function isNewer(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) > 0;
}

/** Returns a package.json with the next version of these packages. */
export function stepManifest(text: string, step: Step): string {
  const manifest: Entry = JSON.parse(text);
  stepEntry(manifest, manifest.name, step);
  return format(manifest);
}

/** Returns a package-lock.json with the next version of these packages. */
export function stepLock(text: string, step: Step): string {
  const lock: Entry & { packages?: Record<string, Entry> } = JSON.parse(text);
  stepEntry(lock, lock.name, step);
  for (const [path, entry] of Object.entries(lock.packages ?? {})) {
    stepEntry(entry, entry.name ?? path.split('node_modules/').at(-1), step);
  }
  return format(lock);
}

function stepEntry(entry: Entry, name: string | undefined, { names, from, to }: Step): void {
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
 * @throws ConfigError, if there is nothing unreleased, or the version has an entry
 */
export function stepChangelog(text: string, version: string, date: string): string {
  const lines = text.split('\n');
  const start = lines.indexOf(UNRELEASED);
  if (start === -1) throw new ConfigError(`CHANGELOG.md has no heading "${UNRELEASED}"`);
  const entry = lines.find((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
  if (entry !== undefined) throw new ConfigError(`CHANGELOG.md has "${entry}": choose a newer version`);
  const next = lines.findIndex((line, index) => index > start && line.startsWith('## '));
  const part = lines.slice(start + 1, next === -1 ? undefined : next);
  if (part.every((line) => line.trim() === '' || line.startsWith('#'))) {
    throw new ConfigError(`CHANGELOG.md has nothing below "${UNRELEASED}": write what has changed`);
  }
  return [...lines.slice(0, start + 1), '', `## ${version} (${date})`, ...lines.slice(start + 1)].join('\n');
}
