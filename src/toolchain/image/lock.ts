/**
 * Reads and writes the lock files of Debian packages. They fix the versions and digests of the packages that
 * an image is built from, or the emulator that tests it. People write `wanted` and `wanted_sources`;
 * `sui-enclave update_lock` writes the rest.
 */
import { writeFileSync } from 'node:fs';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { readRegularFile } from 'sui-enclave-cli/read_file';
import * as v from 'valibot';

const Name = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9+.-]*$/));

const LockedFile = v.strictObject({
  name: Name,
  version: v.pipe(v.string(), v.regex(/^[A-Za-z0-9.+:~-]+$/)),
  /** Name of the Debian archive that the file comes from. */
  archive: v.picklist(['debian', 'debian-security']),
  /** Path inside the archive. */
  path: v.pipe(v.string(), v.regex(/^pool\/[A-Za-z0-9.+~_/-]+$/), v.excludes('..')),
  size: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
});

const Lock = v.strictObject({
  suite: v.pipe(v.string(), v.regex(/^[a-z]+$/)),
  /** Time at which the archive had these files, in the format of Debian's snapshot archive. */
  archive_time: v.pipe(v.string(), v.regex(/^\d{8}T\d{6}Z$/)),
  /** Packages that people asked for. All other packages are their dependencies. */
  wanted: v.array(Name),
  /** Source packages whose original tarball people asked for. */
  wanted_sources: v.array(Name),
  packages: v.array(LockedFile),
  sources: v.array(LockedFile),
});

export type LockedFile = v.InferOutput<typeof LockedFile>;
export type Lock = v.InferOutput<typeof Lock>;

/** @throws ImageError: LOCK_INVALID */
export function readLock(path: string): Lock {
  let text: string;
  try {
    text = readRegularFile(path).toString();
  } catch (error) {
    throw new ImageError('LOCK_INVALID', `${path} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  return parseLock(text, path);
}

/** @throws ImageError: LOCK_INVALID. The message names the invalid property */
export function parseLock(text: string, name: string): Lock {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new ImageError('LOCK_INVALID', `${name} is not JSON`);
  }
  const parsed = v.safeParse(Lock, data);
  if (!parsed.success) {
    const at = v.getDotPath(parsed.issues[0]) ?? 'top level';
    throw new ImageError(
      'LOCK_INVALID',
      `${name}, ${at}: this is not in the form that npx --offline sui-enclave update_lock writes`,
    );
  }
  const names = [...parsed.output.packages, ...parsed.output.sources].map((file) => file.name);
  const duplicate = names.find((name, at) => names.indexOf(name) !== at);
  if (duplicate !== undefined) throw new ImageError('LOCK_INVALID', `${name} names ${duplicate} twice`);
  return parsed.output;
}

export function writeLock(path: string, lock: Lock): void {
  writeFileSync(path, formatLock(lock));
}

/** Formats a lock with one line per package, so that a diff shows each changed package as a line. */
export function formatLock(lock: Lock): string {
  const { packages, sources, ...lockFields } = lock;
  const list = (files: readonly LockedFile[]) =>
    files.length === 0 ? '[]' : `[\n${files.map((file) => `    ${JSON.stringify(file)}`).join(',\n')}\n  ]`;
  const head = Object.entries(lockFields).map(
    ([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  );
  return `{\n${[...head, `  "packages": ${list(packages)}`, `  "sources": ${list(sources)}`].join(',\n')}\n}\n`;
}

/** Returns the changes from one lock to another, one per line; an empty list if both have the same files. */
export function diffLocks(before: Lock, after: Lock): string[] {
  const files = (lock: Lock) => new Map([...lock.packages, ...lock.sources].map((file) => [file.name, file]));
  const old = files(before);
  const current = files(after);
  return [...new Set([...old.keys(), ...current.keys()])].sort().flatMap((name) => {
    const oldFile = old.get(name);
    const currentFile = current.get(name);
    if (oldFile === undefined) return [`+ ${name} ${currentFile?.version}`];
    if (currentFile === undefined) return [`- ${name} ${oldFile.version}`];
    if (oldFile.sha256 === currentFile.sha256) return [];
    return [`~ ${name} ${oldFile.version} -> ${currentFile.version}`];
  });
}
