/** Finds, among the Move packages of a commit, the one that a package on chain was published from. */
import { printable } from 'sui-enclave-cli/printable';
import type { Sources } from '../move/packages.ts';
import { FEED_PACKAGE } from '../places.ts';
import { type CompiledModule, type Compiler, folderAt } from './compile.ts';
import { AuditError } from './errors.ts';
import { localPaths, modulesIn, sourcesIn } from './move_sources.ts';

/** Properties of a package on chain by which an audit finds its sources. */
export interface PublishedPackage {
  /** Names of its modules, without those that a release of `enclave` contains. */
  readonly modules: ReadonlySet<string>;
  /** The module that identifies its folder; undefined if the package has no such module. */
  readonly main: string | undefined;
  /** Modules of the other packages that it links to, without `enclave`, by original id. */
  readonly linked: ReadonlyMap<string, ReadonlySet<string>>;
  /** The original id of `enclave`; undefined if the modules of `enclave` are in this package. */
  readonly enclave: string | undefined;
}

export interface CompiledPackage {
  /** Folders in `move/` of the commit: the package's own, then those of packages that became part of it. */
  readonly folders: readonly string[];
  readonly modules: readonly CompiledModule[];
}

interface Folder {
  readonly sources: Sources;
  /** The modules that the folder declares. */
  readonly modules: ReadonlySet<string>;
  /** The folders of the package's local dependencies. */
  readonly dependencies: readonly string[];
}

/** Maximum number of packages in a commit: compiling one may take the whole time limit of a compilation. */
const MAX_PACKAGES = 20;

const createUnknownError = (why: string) => new AuditError('BYTECODE_UNKNOWN', why);

export class MoveCommit {
  /** Name for people, such as `the commit 12ab…`. */
  readonly name: string;
  readonly #compiler: Compiler;
  readonly #paths: ReadonlyMap<string, string>;
  readonly #compiled = new Map<string, Promise<CompiledModule[]>>();
  #folders: ReadonlyMap<string, Folder> | undefined;

  /**
   * @param paths of the packages, by folder name
   * @throws AuditError: SOURCE_TOO_LARGE
   */
  constructor(name: string, paths: ReadonlyMap<string, string>, compiler: Compiler) {
    if (paths.size > MAX_PACKAGES) {
      throw new AuditError('SOURCE_TOO_LARGE', `move/ of ${name} has more than ${MAX_PACKAGES} packages`);
    }
    this.name = name;
    this.#paths = paths;
    this.#compiler = compiler;
  }

  /** Returns whether a folder declares one of the modules. @throws as `compile` does */
  declares({ modules }: PublishedPackage): boolean {
    return [...modules].some((module) => this.#listDeclaring(module).length > 0);
  }

  /**
   * Compiles the folders that the package on chain may have been published from.
   *
   * @throws AuditError: BYTECODE_UNKNOWN, NOT_FULLY_CHECKED
   */
  async compile(requirements: PublishedPackage): Promise<CompiledPackage> {
    const root = this.#findRoot(requirements);
    const reachedFolders = this.#listReachable(root);
    const parts: string[] = [];
    const published = new Map<string, string>();
    if (requirements.enclave !== undefined) published.set('enclave', requirements.enclave);
    for (const folder of reachedFolders) {
      const { modules } = this.#getFolder(folder);
      const overlaps = (names: ReadonlySet<string>) => [...modules].some((name) => names.has(name));
      const [original] = [...requirements.linked].find(([, names]) => overlaps(names)) ?? [];
      if (folder === root || overlaps(requirements.modules)) parts.push(folder);
      else if (original !== undefined) published.set(folder, original);
    }
    const modules: CompiledModule[] = [];
    for (const folder of parts) modules.push(...(await this.#compile(folder, published)));
    return { folders: parts, modules };
  }

  /**
   * Returns the folder with the main module. Without a main module, returns the folder with modules of the
   * package on which no other such folder depends.
   *
   * @throws AuditError: BYTECODE_UNKNOWN, if there is not exactly one
   */
  #findRoot({ modules, main }: PublishedPackage): string {
    const names = new Set(main === undefined ? modules : [main, ...modules]);
    const declaringFolders = new Set([...names].flatMap((module) => this.#findDeclaring(module) ?? []));
    const roots =
      main === undefined
        ? [...declaringFolders].filter((folder) => !this.#isBelow(folder, declaringFolders))
        : [this.#findDeclaring(main)].filter((folder) => folder !== undefined);
    const [root, otherRoot] = roots.map((folder) => printable(folder));
    if (roots[0] === undefined) {
      const [module = ''] = names;
      throw createUnknownError(`no package in move/ of ${this.name} has the module ${module}`);
    }
    if (otherRoot === undefined) return roots[0];
    throw createUnknownError(
      `the package has modules of move/${root} and of move/${otherRoot} of ${this.name}, and neither depends on the other`,
    );
  }

  /** Returns the folder that declares a module. @throws AuditError: BYTECODE_UNKNOWN, if several do */
  #findDeclaring(module: string): string | undefined {
    const [folder, otherFolder] = this.#listDeclaring(module);
    if (folder === undefined || otherFolder === undefined) return folder;
    const both = `move/${printable(folder)} and move/${printable(otherFolder)}`;
    throw createUnknownError(`${both} of ${this.name} both declare a module ${module}`);
  }

  #isBelow(folder: string, folders: ReadonlySet<string>): boolean {
    return [...folders].some(
      (otherFolder) => otherFolder !== folder && this.#listReachable(otherFolder).has(folder),
    );
  }

  #listDeclaring(module: string): string[] {
    return [...this.#allFolders].filter(([, { modules }]) => modules.has(module)).map(([folder]) => folder);
  }

  /** Returns a folder and all folders that it depends on, directly or not. */
  #listReachable(root: string): ReadonlySet<string> {
    const reached = new Set([root]);
    // The loop also visits folders that are added to the set during the loop.
    for (const folder of reached) {
      for (const next of this.#getFolder(folder).dependencies)
        if (this.#allFolders.has(next)) reached.add(next);
    }
    return reached;
  }

  get #allFolders(): ReadonlyMap<string, Folder> {
    this.#folders ??= this.#readFolders();
    return this.#folders;
  }

  #readFolders(): ReadonlyMap<string, Folder> {
    const folders = new Map(
      // The compiler takes the framework's package from this program, not from the commit.
      [...this.#paths].flatMap(([name, path]) =>
        name === 'enclave' ? [] : [[name, readFolder(path)] as const],
      ),
    );
    const usesFeed = [...folders.values()].some(({ dependencies }) => dependencies.includes('feed'));
    if (usesFeed && !folders.has('feed')) folders.set('feed', readFolder(FEED_PACKAGE));
    return folders;
  }

  #getFolder(name: string): Folder {
    return this.#allFolders.get(name) ?? { sources: {}, modules: new Set(), dependencies: [] };
  }

  #compile(folder: string, published: ReadonlyMap<string, string>): Promise<CompiledModule[]> {
    const key = JSON.stringify([folder, ...published]);
    const reached = [...this.#listReachable(folder)].filter((name) => name !== folder);
    const folders = new Map(reached.map((name) => [name, this.#getFolder(name).sources]));
    const compiling =
      this.#compiled.get(key) ??
      this.#compiler.compile(folder, this.#getFolder(folder).sources, { folders, published });
    this.#compiled.set(key, compiling);
    return compiling;
  }
}

function readFolder(path: string): Folder {
  const sources = sourcesIn(path);
  const dependencies = localPaths(sources).flatMap((local) => folderAt(local) ?? []);
  return { sources, modules: modulesIn(sources), dependencies };
}
