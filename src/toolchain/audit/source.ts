/** Reads the application and its settings from a commit. The framework is always the auditor's own. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isConfigError } from 'sui-enclave/errors';
import type { Source } from 'sui-enclave/sui/structs';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { makeEnvironment } from 'sui-enclave-cli/image/settings';
import { IS_CLONE } from 'sui-enclave-cli/places';
import { printable } from 'sui-enclave-cli/printable';
import { readVersion } from 'sui-enclave-cli/release';
import { readManifest } from 'sui-enclave-server/load_application';
import { MAX_MANIFEST_BYTES, type Manifest } from 'sui-enclave-server/manifest';
import {
  type ImageInputs,
  type ImageSource,
  imageInputs,
  imageSources,
  type NpmLock,
  neededByImage,
  readLock,
} from '../image/context.ts';
import { EXCLUDED_NAMES, readFiles } from '../image/files.ts';
import { toNpmPackage } from '../image/npm.ts';
import { FRAMEWORK } from '../places.ts';
import { AuditError } from './errors.ts';
import { nameAt, readTrustedLock } from './lockfile.ts';
import type { Tree } from './tree.ts';

/** The integrity of the framework's packages, by package name, as this program knows it. */
export type KnownPackages = Readonly<Record<string, string>>;

/** The framework of the auditor's program. */
export interface OwnFramework {
  readonly folder: string;
  readonly version: string;
  readonly packages: KnownPackages;
}

/**
 * Returns the framework of this program. Packing the program records the integrity of its packages; a clone
 * has no such record.
 */
export function ownFramework(): OwnFramework {
  const file = join(FRAMEWORK, 'packages.json');
  const packages = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  return { folder: FRAMEWORK, version: readVersion(), packages };
}

/** An application in a commit. */
export interface AuditedSource extends ImageSource {
  readonly name: string;
  readonly manifest: Manifest;
  /** Environment of the server in the image. */
  readonly environment: Readonly<Record<string, string>>;
  readonly inputs: ImageInputs;
  /** Folders of the Move packages, by folder name. */
  readonly movePackages: ReadonlyMap<string, string>;
}

/** Maximum size of each file in bytes, far more than any file needs. */
const MAX_SETTINGS = { 'app.yaml': MAX_MANIFEST_BYTES, 'server.env': 1_000_000, 'package.json': 1_000_000 };

const createInvalidError = (why: string) => new AuditError('SOURCE_INVALID', why);

/**
 * Returns the command that runs a version of the program from packed files. No registry has the program's
 * names yet, and anyone who claimed a name there could run code on this machine.
 */
export function programLine(version: string): string {
  const files = ['sui-enclave-cli', 'sui-enclave-toolchain', 'sui-enclave-server'].map(
    (name) => `--package=<folder>/${name}-${version}.tgz`,
  );
  return `npm exec ${files.join(' ')} -- sui-enclave audit`;
}

/**
 * Checks whether this program builds the version that the config names.
 *
 * @throws AuditError: FRAMEWORK_VERSION
 */
export function checkVersion({ frameworkVersion: expectedVersion }: Source, framework: OwnFramework): void {
  if (expectedVersion === framework.version) return;
  // The text must not contain what a shell would run, since the message shows it in a command.
  const version = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.exec(expectedVersion)?.[0];
  const advice =
    version === undefined
      ? ''
      : `. With the packages of that version in a folder (of its release, or packed in a clone at its commit): ${programLine(version)}`;
  throw new AuditError(
    'FRAMEWORK_VERSION',
    `the image was built with version ${printable(expectedVersion, 50)} of the framework, and this program is version ${framework.version}${advice}`,
  );
}

/**
 * Reads the application in a folder of a commit.
 *
 * @param folder of the application, as the config names it
 * @throws AuditError: SOURCE_INVALID, SOURCE_UNSAFE, LOCK_UNTRUSTED, FRAMEWORK_UNKNOWN, FRAMEWORK_VERSION
 */
export function readSource(tree: Tree, folder: string, framework: OwnFramework): AuditedSource {
  const app = folderIn(tree, folder);
  if (!isFile(join(app, 'app.yaml')) || !isFile(join(app, 'app.ts'))) {
    throw createInvalidError(
      `${folder || 'the root'} of the commit has no application: no app.yaml with app.ts`,
    );
  }
  try {
    for (const [name, maxSize] of Object.entries(MAX_SETTINGS)) {
      if (isFile(join(app, name)) && statSync(join(app, name)).size > maxSize) {
        throw createInvalidError(`${name} has more than ${maxSize} bytes`);
      }
    }
    const isApart = isFile(join(app, 'package-lock.json'));
    const root = isApart ? app : tree.folder;
    if (
      !isApart &&
      !(isFile(join(root, 'package-lock.json')) && isFile(join(root, 'src/server/package.json')))
    ) {
      throw createInvalidError(
        'the commit has no package-lock.json beside the application, and is not a clone of the framework',
      );
    }
    checkOmitted(tree, isApart ? folder : '');
    const source = isApart ? readApart(app, framework) : readInClone(root, folder, framework);
    // Invalid files must fail here, not after minutes of building.
    readFiles(app, source.manifest);
    return { ...source, environment: readEnvironment(source), movePackages: listMovePackages(root) };
  } catch (error) {
    if (error instanceof ImageError && error.code === 'LOCK_INVALID') {
      throw new AuditError('LOCK_UNTRUSTED', printable(error.message, 400), { cause: error });
    }
    if (isConfigError(error) || error instanceof SyntaxError) {
      throw createInvalidError(printable(error.message, 400));
    }
    throw error;
  }
}

/**
 * Returns the folders of a commit's Move packages, by folder name. An audit reads nothing else from an older
 * commit.
 *
 * @param folder of the application
 * @throws AuditError: SOURCE_INVALID
 */
export function findMovePackages(tree: Tree, folder: string): ReadonlyMap<string, string> {
  const app = folderIn(tree, folder);
  return listMovePackages(isFile(join(app, 'package-lock.json')) ? app : tree.folder);
}

function listMovePackages(root: string): ReadonlyMap<string, string> {
  const files = globSync('move/*/Move.toml', { cwd: root }).map((file) =>
    file.slice(0, -'/Move.toml'.length),
  );
  return new Map(files.sort().map((path) => [basename(path), join(root, path)]));
}

/** @throws AuditError: SOURCE_INVALID */
function folderIn(tree: Tree, folder: string): string {
  if (/^(?:[\w-][\w.-]*(?:\/[\w-][\w.-]*)*)?$/.test(folder)) return join(tree.folder, folder);
  throw createInvalidError(`${JSON.stringify(printable(folder))} is not the path of a folder`);
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** @throws AuditError: SOURCE_UNSAFE */
function checkOmitted({ omitted }: Tree, folder: string): void {
  const prefix = folder === '' ? '' : `${folder}/`;
  const omittedEntry = omitted.find(({ path }) => {
    const [first = ''] = path.slice(prefix.length).split('/');
    return path.startsWith(prefix) && (first === 'move' || !EXCLUDED_NAMES.has(first));
  });
  if (omittedEntry === undefined) return;
  throw new AuditError(
    'SOURCE_UNSAFE',
    `${JSON.stringify(printable(omittedEntry.path))} of the commit is ${omittedEntry.kind}, from which no image is built`,
  );
}

type ReadSource = ImageSource & Pick<AuditedSource, 'name' | 'manifest' | 'inputs'>;

/** Reads an application that has its own repository. */
function readApart(app: string, framework: OwnFramework): ReadSource {
  const lock = readTrustedLock(app, false);
  checkKnown(lock, framework);
  const { name, manifest } = readManifest(app);
  const source = {
    framework: framework.folder,
    app,
    appDir: join('src/apps', name),
    isApart: true,
    name,
    manifest,
  };
  return { ...source, inputs: imageInputs(source) };
}

/**
 * Checks the framework's packages at every path in the lock file, since an application imports them by name.
 */
function checkKnown({ packages }: NpmLock, framework: OwnFramework): void {
  const hasServer = packages['node_modules/sui-enclave-server'] !== undefined;
  if (!hasServer) throw createUnknownError('has no sui-enclave-server');
  const names = ['sui-enclave', 'sui-enclave-server'];
  for (const [path, { integrity }] of Object.entries(packages)) {
    const name = nameAt(path);
    if (!names.includes(name)) continue;
    const knownIntegrity = framework.packages[name];
    if (knownIntegrity === undefined) {
      throw createUnknownError(
        `has a package ${name} of version ${framework.version}, which a clone does not know: audit with the installed sui-enclave-cli of that version`,
      );
    }
    if (integrity !== knownIntegrity) {
      throw createUnknownError(
        `has ${printable(path)} with the integrity ${integrity}, but version ${framework.version} has ${knownIntegrity}`,
      );
    }
  }
}

const createUnknownError = (problem: string) =>
  new AuditError('FRAMEWORK_UNKNOWN', `package-lock.json ${problem}`);

/** Reads an application in a clone of the framework. The commit's framework must equal the auditor's. */
function readInClone(root: string, appDir: string, framework: OwnFramework): ReadSource {
  // The build puts the application at this path, beside the framework. At another path, the application could
  // replace a tool.
  if (!/^src\/apps\/[a-z][a-z0-9_-]{0,63}$/.test(appDir)) {
    throw createInvalidError(
      `the application of a clone must be in src/apps, not in ${printable(appDir) || 'its root'}`,
    );
  }
  const lock = readTrustedLock(root, true);
  const app = join(root, appDir);
  const { name, manifest } = readManifest(app, basename(app));
  const theirs = neededByImage(root, appDir, lock);
  const ours = neededByImage(framework.folder, undefined);
  const paths = imageSources(ours, undefined);
  for (const path of [...paths, 'Containerfile']) checkSame(root, framework.folder, path);
  const ourLock = readLock(framework.folder);
  for (const path of ours.modules) {
    if (lock.packages[path]?.integrity !== ourLock.packages[path]?.integrity) {
      throw createStateError(`package-lock.json, ${path}`);
    }
  }
  const shadow = theirs.modules.find((path) => isShadow(path, appDir, ours.modules));
  if (shadow !== undefined) throw createStateError(`package-lock.json, ${shadow}`);
  const foreignWorkspace = theirs.workspaces.find(
    (path) => path !== appDir && !ours.workspaces.includes(path),
  );
  if (foreignWorkspace !== undefined) {
    throw createInvalidError(
      `the application depends on ${printable(foreignWorkspace)}, which is not a part of the framework`,
    );
  }
  const packages = new Map(
    theirs.modules.map((path) => [path, toNpmPackage(path, lock.packages[path] ?? {})] as const),
  );
  const source = { framework: framework.folder, app, appDir, isApart: false, name, manifest };
  return { ...source, inputs: { needed: theirs, packages } };
}

/**
 * Returns whether the framework's code would import a package from this path, where the framework itself has
 * none.
 */
function isShadow(path: string, appDir: string, ours: readonly string[]): boolean {
  if (ours.includes(path) || path.startsWith(`${appDir}/node_modules/`)) return false;
  const [top = ''] = /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
  return top === '' || ours.includes(top);
}

/** @throws AuditError: FRAMEWORK_VERSION */
function checkSame(root: string, frameworkFolder: string, path: string): void {
  const [theirs, ours] = [root, frameworkFolder].map((folder) => listFiles(folder, path)) as [
    Set<string>,
    Set<string>,
  ];
  for (const file of new Set([...ours, ...theirs])) {
    const isSame =
      ours.has(file) &&
      theirs.has(file) &&
      readFileSync(join(root, file)).equals(readFileSync(join(frameworkFolder, file)));
    if (!isSame) throw createStateError(printable(file));
  }
}

/** Lists a file, or all files in a folder except for installed packages. */
function listFiles(folder: string, path: string): Set<string> {
  const paths = existsSync(join(folder, path))
    ? [path, ...globSync(`${path}/**`, { cwd: folder, exclude: ['**/node_modules/**'] })]
    : [];
  return new Set(paths.filter((file) => statSync(join(folder, file)).isFile()));
}

function createStateError(problem: string): AuditError {
  const how = IS_CLONE ? 'check that commit out in this clone' : 'use a clone at that commit';
  return new AuditError(
    'FRAMEWORK_VERSION',
    `the framework in the commit differs from this program's: ${problem} is not the same. To audit it, ${how}, and run the command again`,
  );
}

/** Reads the settings in the same way as the build of an image. */
function readEnvironment({ framework, app, name, manifest }: ReadSource): Readonly<Record<string, string>> {
  const texts = [join(framework, 'enclave/server.env'), join(app, 'server.env')]
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'));
  const hasOwnCa = existsSync(join(app, 'ca.pem'));
  const lines = makeEnvironment(name, manifest, texts.join('\n'), hasOwnCa);
  const pairs = lines.map((line): [string, string] => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
