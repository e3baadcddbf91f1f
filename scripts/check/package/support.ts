/** Functions that the steps of `make test-package` share. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright';
import { rolldown } from 'rolldown';

export const run = promisify(execFile);

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Steps in order, by their titles. Each step needs the effects of the steps before it, and returns a detail
 * to print.
 */
export type Steps = Record<string, () => Promise<string>>;

export interface PublishedManifest {
  readonly name: string;
  readonly version: string;
  readonly repository?: { readonly url: string; readonly directory: string };
  readonly publishConfig: unknown;
  readonly engines: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional: boolean }>>;
}

/** Unpacks a tarball to `package` in a folder. */
export async function unpack(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', folder]);
}

/** Returns the package.json of an unpacked tarball. */
export function readPublished(folder: string): PublishedManifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

export function expectEqual(received: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(received), JSON.stringify(expected)];
  if (a !== b) throw new Error(`found ${a}, expected ${b}`);
}

/** Starts Debian's Chromium, or the browser that CHROMIUM names. */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root. It is not needed, since the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}

/** Returns the installed version of an npm package. */
export function installedVersion(name: string): string {
  return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/** Returns the packages that are installed more than once in a project. */
export function listDuplicates(project: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8'));
  const names = Object.keys(packages).map((path) => path.split('node_modules/').at(-1) ?? '');
  return names.filter((name, index) => names.indexOf(name) !== index);
}

/**
 * Checks that a manifest depends on the packages that its modules import, in the versions that are installed
 * here, and has no development dependencies. A bundler finds the imports, so this check does not rely on the
 * pattern by which packing finds them.
 *
 * @param folder of the unpacked tarball
 * @returns the number of packages that the modules import
 */
export async function checkDependencies(folder: string, modules: readonly string[]): Promise<number> {
  const { dependencies, peerDependencies, ...manifestRest } = readPublished(folder);
  const imported = new Set<string>();
  const bundle = await rolldown({
    input: modules.map((module) => join(folder, module)),
    platform: 'node',
    external(specifier) {
      const isOwn = /^[./#]/.test(specifier);
      if (!isOwn && !isBuiltin(specifier)) {
        imported.add(specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
      }
      return !isOwn;
    },
  });
  await bundle.generate();
  await bundle.close();
  expectEqual(Object.keys({ ...dependencies, ...peerDependencies }).sort(), [...imported].sort());
  for (const [name, version] of Object.entries(dependencies)) expectEqual(version, installedVersion(name));
  for (const unwanted of ['scripts', 'devDependencies', 'optionalDependencies', 'private']) {
    if (unwanted in manifestRest) throw new Error(`the manifest has "${unwanted}"`);
  }
  return imported.size;
}
