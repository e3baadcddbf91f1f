/**
 * Finds the application and the Move packages of a command. In a clone of this repository, these are
 * `src/apps/<name>` and `move/<package>`. For the installed program, they are the folder with `app.yaml` and
 * `package.json` at or above the current one, and its `move/<package>`.
 */
import { existsSync, globSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { CLONE, IS_CLONE } from 'sui-enclave-cli/places';
import { applicationNames, nameOfFolder } from 'sui-enclave-server/load_application';
import { APPLICATION_NAME } from 'sui-enclave-server/manifest';

export interface ApplicationFolder {
  /** Value of the variable APP: see `nameOfFolder`. */
  readonly name: string;
  /** Absolute path without a slash at its end. */
  readonly folder: string;
}

export interface Project {
  /** Absolute path without a slash at its end. The folder contains `out` and `move`. */
  readonly root: string;
  readonly isClone: boolean;
  /**
   * @param name of an application in a clone. An author's repository has one application, which needs no name
   * @throws ConfigError if there is no such application, or its `app.yaml` has another name
   */
  application(name?: string): ApplicationFolder;
  /** Returns the absolute paths of the Move packages by folder name, in order. */
  movePackages(): ReadonlyMap<string, string>;
}

/** Returns the project of a clone: this program's clone, unless a test names a copy. */
export function cloneAt(root = CLONE): Project {
  const apps = join(root, 'src/apps');
  return {
    root: resolve(root),
    isClone: true,
    application(name) {
      if (name === undefined) throw new ConfigError('APP must name the application, a folder of src/apps');
      const folder = join(apps, name);
      const exists = APPLICATION_NAME.test(name) && existsSync(join(folder, 'app.yaml'));
      if (!exists) throw createUnknownError(name, applicationNames(apps));
      return { name: nameOfFolder(folder, name), folder };
    },
    movePackages: () => findPackages(join(root, 'move')),
  };
}

/** Returns the project of an author's own repository. @param root its folder, with `app.yaml` */
export function repositoryAt(root: string): Project {
  const folder = resolve(root);
  return {
    root: folder,
    isClone: false,
    application(applicationName) {
      const name = nameOfFolder(folder);
      if (applicationName !== undefined && applicationName !== name)
        throw createUnknownError(applicationName, [name]);
      return { name, folder };
    },
    movePackages: () => findPackages(join(folder, 'move')),
  };
}

/**
 * Returns the project of the current folder.
 *
 * @param from folder where the search for an author's repository begins
 * @throws ConfigError if the program is installed, and no folder at or above this one has an application
 */
export function findProject(from = process.cwd()): Project {
  if (IS_CLONE) return cloneAt();
  return repositoryAt(findRoot(from));
}

function findRoot(from: string): string {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    if (['app.yaml', 'package.json'].every((file) => existsSync(join(folder, file)))) return folder;
    if (folder === dirname(folder)) {
      throw new ConfigError(
        'there is no application here: neither this folder nor one above has app.yaml and package.json. create-sui-enclave writes them',
      );
    }
  }
}

function findPackages(move: string): ReadonlyMap<string, string> {
  const names = globSync('*/Move.toml', { cwd: move }).map(dirname).sort();
  return new Map(names.map((name) => [name, join(move, name)]));
}

function createUnknownError(name: string, knownNames: readonly string[]): ConfigError {
  const list = knownNames.join(', ') || 'none';
  return new ConfigError(`APP=${name}: there is no such application; the applications are: ${list}`);
}

/** Returns a path in the form that a person in the given folder would write. */
export function shortPath(folder: string, path: string): string {
  const short = relative(folder, path);
  return short.startsWith('..') ? path : short || '.';
}
