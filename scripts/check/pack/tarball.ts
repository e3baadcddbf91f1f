/** Makes the parts that all packages have: a manifest, a licence, and a tarball in `out`. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Channel } from '../../../src/toolchain/image/measurements.ts';
import { formatRepositoryFields, type Repository } from './repository.ts';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const OUT = join(ROOT, 'out');

type Versions = Readonly<Record<string, string>>;
/** Information about peers that only some entries need. */
type PeersMeta = Readonly<Record<string, { readonly optional: boolean }>>;

/** The part of a package.json in `src` that packing reads. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly sideEffects: boolean;
  readonly exports: Readonly<Record<string, string>>;
  /** Paths of modules by condition, by the names under which only the package itself may import them. */
  readonly imports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly dependencies?: Versions;
  readonly peerDependencies?: Versions;
  readonly peerDependenciesMeta?: PeersMeta;
}

/** Reads a package.json. @param folder of `src` */
export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'src', folder, 'package.json'), 'utf8'));
}

/** The version that is packed, which all packages have. */
export interface Publication {
  readonly version: string;
  readonly channel: Channel;
  /** The public repository, if package.json names it. */
  readonly repository: Repository | undefined;
}

/** The dist-tag that `npm publish` sets. npm installs `latest` where no version is given. */
const DIST_TAGS: Readonly<Record<Channel, string>> = { stable: 'latest', experimental: 'experimental' };

/**
 * Returns the command by which a README installs packages of this version, and others. Only a stable version
 * is sure to be in a registry. An experimental version is installed from files, because anyone may claim a
 * name that the registry does not have.
 */
export function formatInstall(
  { version, channel }: Publication,
  names: readonly string[],
  otherPackages: readonly string[] = [],
): string {
  const specifiers = names.map((name) =>
    channel === 'stable' ? `${name}@${version}` : `./${name}-${version}.tgz`,
  );
  return ['npm install', ...specifiers, ...otherPackages].join(' ');
}

/** A folder with the compiled modules of a package and its README, and the content of its package.json. */
export interface Content {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Folder of the package in the repository. */
  readonly directory: string;
  readonly publication: Publication;
  /** Range of the versions of Node that the package supports. */
  readonly node: string;
  /** Compiled modules by entry, without extension, such as `./client/index`. */
  readonly entries: Readonly<Record<string, string>>;
  /**
   * Possible peers. A peer that the package imports becomes its peer; its other imports become dependencies.
   */
  readonly peerDependencies: Versions;
  readonly peerDependenciesMeta?: PeersMeta;
  /** Paths of the programs' modules in the folder, by program name. */
  readonly bin?: Readonly<Record<string, string>>;
  /** Imports as in `Manifest`, with compiled modules. */
  readonly imports?: Manifest['imports'];
}

/** Returns the entries for modules that are exported for another package of the same version. */
export function internalEntries(modules: readonly string[]): Record<string, string> {
  return Object.fromEntries(modules.map((module) => [`./internal/${module}`, `./${module}`]));
}

export interface Tarball {
  readonly name: string;
  /** Path of the tarball, from the root of the repository. */
  readonly file: string;
  readonly files: number;
  readonly bytes: number;
}

/** Writes package.json and licence to the folder, and packs it. */
export function makeTarball(content: Content): Tarball {
  const { folder, manifest } = content;
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(createManifest(content), null, 2)}\n`);
  setModes(folder);
  mkdirSync(OUT, { recursive: true });
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', OUT], {
    cwd: folder,
    encoding: 'utf8',
  });
  const [{ filename, entryCount, size }] = JSON.parse(packed);
  return { name: manifest.name, file: `out/${filename}`, files: entryCount, bytes: size };
}

/**
 * Sets the mode of each file to 644 or 755: npm packs the modes, which depend on the umask of the checkout.
 */
function setModes(folder: string): void {
  for (const path of globSync('**/*', { cwd: folder, withFileTypes: true })) {
    if (!path.isFile()) continue;
    const file = join(path.parentPath, path.name);
    chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

function createManifest(content: Content): object {
  const { folder, manifest, directory, publication, node, entries, peerDependencies, bin } = content;
  const { version, channel, repository } = publication;
  const { peerDependenciesMeta, imports } = content;
  const { name, description, license, type, sideEffects } = manifest;
  const imported = importedPackages(folder);
  const isPeer = (name: string) => Object.hasOwn(peerDependencies, name);
  const versions = (names: readonly string[], findVersion: (name: string) => string | undefined) =>
    Object.fromEntries(names.map((name) => [name, findVersion(name)]));
  return {
    name,
    version,
    description,
    license,
    type,
    sideEffects,
    engines: { node },
    ...(repository && formatRepositoryFields(repository, directory)),
    publishConfig: { access: 'public', provenance: true, tag: DIST_TAGS[channel] },
    ...(bin && { bin }),
    ...(imports && { imports }),
    exports: Object.fromEntries(
      Object.entries(entries).map(([entry, path]) => [
        entry,
        {
          ...(existsSync(join(folder, `${path}.d.ts`)) && { types: `${path}.d.ts` }),
          default: `${path}.js`,
        },
      ]),
    ),
    dependencies: versions(
      imported.filter((name) => !isPeer(name)),
      pinnedVersion,
    ),
    peerDependencies: versions(imported.filter(isPeer), (name) => peerDependencies[name]),
    ...(peerDependenciesMeta && { peerDependenciesMeta }),
  };
}

/**
 * Returns the version of an npm package, which must be the same in all packages of this repository.
 *
 * @throws Error if no package depends on it
 */
function pinnedVersion(name: string): string {
  // The library's peers are version ranges, which do not count.
  const folders = globSync('*/package.json', { cwd: join(ROOT, 'src') }).map(dirname);
  for (const folder of folders) {
    const { dependencies, peerDependencies } = readManifest(folder);
    const version = dependencies?.[name] ?? (folder === 'library' ? undefined : peerDependencies?.[name]);
    if (version !== undefined) return version;
  }
  throw new Error(`${name} is imported, but no package.json in src depends on it`);
}

/** Returns the packages that the compiled modules of a folder import when they run. */
function importedPackages(folder: string): string[] {
  const names = new Set<string>();
  for (const path of globSync('**/*.{js,cjs}', { cwd: folder, exclude: ['framework/**', 'console/**'] })) {
    const code = readFileSync(join(folder, path), 'utf8');
    for (const [, name] of code.matchAll(
      /\b(?:from|import\(|require\()\s*["']((?:@[\w.-]+\/)?\w[\w.-]*)[/"']/g,
    )) {
      names.add(name as string);
    }
  }
  return [...names].sort();
}
