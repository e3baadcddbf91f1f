/**
 * The lock files of Debian's packages: which bytes the image (or the emulator of its test) is made from.
 * `wanted` is written by people, the rest by `sui-enclave update_lock`.
 */
import { writeFileSync } from 'node:fs';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { readRegularFile } from 'sui-enclave-cli/read_file';
import * as v from 'valibot';

const Name = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9+.-]*$/));

const LockedFile = v.strictObject({
  name: Name,
  version: v.pipe(v.string(), v.regex(/^[A-Za-z0-9.+:~-]+$/)),
  /** Debian's archives that it may come from. */
  archive: v.picklist(['debian', 'debian-security']),
  /** Path inside the archive. */
  path: v.pipe(v.string(), v.regex(/^pool\/[A-Za-z0-9.+~_/-]+$/), v.excludes('..')),
  size: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
});

const Lock = v.strictObject({
  suite: v.pipe(v.string(), v.regex(/^[a-z]+$/)),
  /** Time at which the archive was in this state, as Debian's snapshot archive writes it. */
  archive_time: v.pipe(v.string(), v.regex(/^\d{8}T\d{6}Z$/)),
  /** Packages that are asked for; the others are what these depend on. */
  wanted: v.array(Name),
  /** Source packages whose original tarball is asked for. */
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
  const result = v.safeParse(Lock, data);
  if (!result.success) {
    const at = v.getDotPath(result.issues[0]) ?? 'top level';
    throw new ImageError(
      'LOCK_INVALID',
      `${name}, ${at}: this is not in the form that npx --offline sui-enclave update_lock writes`,
    );
  }
  const names = [...result.output.packages, ...result.output.sources].map((file) => file.name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new ImageError('LOCK_INVALID', `${name} names ${twice} twice`);
  return result.output;
}

export function writeLock(path: string, lock: Lock): void {
  writeFileSync(path, formatLock(lock));
}

/** One line for each package, so that a difference shows as lines. */
export function formatLock(lock: Lock): string {
  const { packages, sources, ...lockFields } = lock;
  const list = (files: readonly LockedFile[]) =>
    files.length === 0 ? '[]' : `[\n${files.map((file) => `    ${JSON.stringify(file)}`).join(',\n')}\n  ]`;
  const head = Object.entries(lockFields).map(
    ([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  );
  return `{\n${[...head, `  "packages": ${list(packages)}`, `  "sources": ${list(sources)}`].join(',\n')}\n}\n`;
}

/** Returns the changes from one lock to the next, a line each; an empty list if both hold the same files. */
export function diffLocks(before: Lock, after: Lock): string[] {
  const files = (lock: Lock) => new Map([...lock.packages, ...lock.sources].map((file) => [file.name, file]));
  const old = files(before);
  const current = files(after);
  return [...new Set([...old.keys(), ...current.keys()])].sort().flatMap((name) => {
    const was = old.get(name);
    const is = current.get(name);
    if (was === undefined) return [`+ ${name} ${is?.version}`];
    if (is === undefined) return [`- ${name} ${was.version}`];
    if (was.sha256 === is.sha256) return [];
    return [`~ ${name} ${was.version} -> ${is.version}`];
  });
}
