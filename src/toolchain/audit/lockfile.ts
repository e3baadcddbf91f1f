/**
 * Reads the lock file of an application for an audit. npm never gets the file: packages are fetched by name,
 * version and SHA-512 alone, and an entry that says anything else is refused.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { printable } from 'sui-enclave-cli/printable';
import { namedEntries } from 'sui-enclave-service/named_entries';
import * as v from 'valibot';
import type { NpmLock } from '../image/context.ts';
import { AuditError } from './errors.ts';

const MAX_BYTES = 20_000_000;
const MAX_ENTRIES = 20_000;

const NAME = '(?:@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*';
/** Pattern of the folder of an installed package, which a build creates at the same path. */
const INSTALLED = new RegExp(`^(?:(?:src/[a-z0-9_/-]+/)?node_modules/${NAME})(?:/node_modules/${NAME})*$`);
const VERSION = /^\d{1,10}\.\d{1,10}\.\d{1,10}(?:-[0-9A-Za-z.-]{1,100})?(?:\+[0-9A-Za-z.-]{1,100})?$/;
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;
/** Pattern of the folder of a package in the repository itself. */
const WORKSPACE = /^[a-z0-9][a-z0-9_-]*(?:\/[a-z0-9][a-z0-9_-]*)*$/;

/** Pattern of the names of the framework's packages, to which a clone of the framework has links. */
const OF_FRAMEWORK = /^(?:create-)?sui-enclave(?:-[a-z_-]+)?$/;

const versions = v.optional(
  v.pipe(
    namedEntries(v.string(), v.string()),
    v.transform((entries): Record<string, string> => Object.fromEntries(entries)),
  ),
);
/** A list of texts. Some packages have one text in place of the list. */
const texts = v.optional(
  v.union([
    v.array(v.string()),
    v.pipe(
      v.string(),
      v.transform((license) => [license]),
    ),
  ]),
);
const Entry = v.object({
  name: v.optional(v.string()),
  version: v.optional(v.string()),
  link: v.optional(v.boolean()),
  resolved: v.optional(v.union([v.string(), v.boolean()])),
  integrity: v.optional(v.string()),
  inBundle: v.optional(v.boolean()),
  bundleDependencies: v.optional(v.unknown()),
  bundledDependencies: v.optional(v.unknown()),
  dependencies: versions,
  optionalDependencies: versions,
  peerDependencies: versions,
  os: texts,
  cpu: texts,
  libc: texts,
});
type Entry = v.InferOutput<typeof Entry>;

const LockFile = v.object({
  lockfileVersion: v.picklist([2, 3]),
  packages: namedEntries(v.string(), Entry),
});

/** Returns the name of the package at a path: `@b/c` for `node_modules/a/node_modules/@b/c`. */
export const nameAt = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 13);

/**
 * Reads a lock file, and checks each of its entries.
 *
 * @param folder with `package-lock.json`
 * @param isClone whether the folder is in a clone of the framework, which has packages of its own
 * @throws AuditError: LOCK_UNTRUSTED
 */
export function readTrustedLock(folder: string, isClone: boolean): NpmLock {
  const file = join(folder, 'package-lock.json');
  if (statSync(file).size > MAX_BYTES) throw createError('is larger than any lock file');
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), LockFile), readFileSync(file, 'utf8'));
  if (!parsed.success) {
    throw createError(
      `is not a lock file of npm 7 or newer: ${v.getDotPath(parsed.issues[0]) ?? 'it is not JSON'}`,
    );
  }
  const { packages } = parsed.output;
  const entries = [...packages];
  if (entries.length > MAX_ENTRIES) throw createError(`has more than ${MAX_ENTRIES} entries`);
  const links = new Set(entries.flatMap(([, { link, resolved }]) => (link ? [resolved] : [])));
  for (const [path, entry] of entries) {
    if (path === '') continue;
    const isWorkspace = isClone && WORKSPACE.test(path) && !path.includes('node_modules') && links.has(path);
    const problem = isWorkspace ? undefined : describeProblem(path, entry, isClone);
    if (problem !== undefined) throw createError(`has ${JSON.stringify(printable(path))}, ${problem}`);
  }
  return { packages: Object.fromEntries(entries.map(([path, entry]) => [path, toLockEntry(entry)])) };
}

function describeProblem(path: string, entry: Entry, isClone: boolean): string | undefined {
  if (!INSTALLED.test(path)) return 'which is not the folder of a package';
  const { link, resolved, version, integrity, name, inBundle, bundleDependencies, bundledDependencies } =
    entry;
  if (link === true) {
    const isFrameworkLink =
      isClone && OF_FRAMEWORK.test(nameAt(path)) && path === `node_modules/${nameAt(path)}`;
    return isFrameworkLink && typeof resolved === 'string' && WORKSPACE.test(resolved) ? undefined : 'a link';
  }
  if (inBundle === true || bundleDependencies !== undefined || bundledDependencies !== undefined) {
    return 'which is in another package, or contains other packages';
  }
  if (name !== undefined && name !== nameAt(path)) return `which is another package, ${printable(name)}`;
  if (version === undefined || !VERSION.test(version)) return 'without an exact version';
  if (integrity === undefined || !SHA512.test(integrity)) return 'without a SHA-512';
  if (resolved !== undefined && !isOfRegistry(resolved, nameAt(path), version)) {
    return `which is not of a registry: ${printable(String(resolved))}`;
  }
  return undefined;
}

/**
 * Returns whether registries serve this package under such a URL. The audit does not use the URL, but asks
 * the auditor's registry.
 */
function isOfRegistry(resolved: string | boolean, name: string, version: string): boolean {
  const url = typeof resolved === 'string' ? URL.parse(resolved) : null;
  const base = name.slice(name.indexOf('/') + 1);
  const plain = version.replace(/\+.*$/, '');
  return (
    url?.protocol === 'https:' &&
    url.username === '' &&
    url.search === '' &&
    // Some registries encode the name of a scoped package in this way.
    url.pathname.replace(/%40/, '@').replace(/%2f/i, '/').endsWith(`/${name}/-/${base}-${plain}.tgz`)
  );
}

function toLockEntry({ resolved, ...entry }: Entry): NpmLock['packages'][string] {
  const entryFields = {
    ...entry,
    // Only links keep this property.
    ...(entry.link === true && typeof resolved === 'string' && { resolved }),
  };
  return JSON.parse(JSON.stringify(entryFields));
}

function createError(problem: string): AuditError {
  return new AuditError('LOCK_UNTRUSTED', `package-lock.json ${problem}`);
}
