/**
 * Compiles and tests the packages in the project's `move/` without the Sui CLI. Uses Sui's own compiler and
 * Move VM in WebAssembly (`@zktx.io/sui-move-builder`).
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import {
  dumpMovePackage,
  GitHubMovePackageFetcher,
  initMovePackageBuilder,
  type MovePackageFetcher,
  testMovePackage,
} from '@zktx.io/sui-move-builder/full';
import { ConfigError } from 'sui-enclave/errors';
import { causeCode } from 'sui-enclave/fetch';
import { IS_CLONE } from 'sui-enclave-cli/places';
import { SuiCommandError } from 'sui-enclave-cli/sui/errors';
import { ENCLAVE_PACKAGE, FEED_PACKAGE, FRAMEWORK_STUB } from '../places.ts';
import { findProject, type Project } from '../project.ts';

/** File contents by path, relative to the package. */
export type Sources = Readonly<Record<string, string>>;

/** A source of the Sui framework's packages. */
export interface Framework {
  readonly fetcher: MovePackageFetcher;
  /** Name of the source in messages. */
  readonly description: string;
  /**
   * Whether this is a stub, which only declares the interface of Sui's framework. Bytecode that was compiled
   * with it must not be published.
   */
  readonly isStub: boolean;
  /** Whether packages come from the address and revision that a Move.toml names. */
  readonly isFetched: boolean;
  /** Returns the reason why sources could not be fetched; undefined if no fetch has failed. */
  readonly failure?: () => string | undefined;
}

/**
 * Chooses the framework by the environment. `SUI_FRAMEWORK_DIR` names a folder with `move-stdlib/` and
 * `sui-framework/`, as in Sui's `crates/sui-framework/packages`. `FRAMEWORK=fetch` makes the compiler fetch
 * these packages from GitHub. The default is the tests' stub.
 *
 * @throws ConfigError if the values of these variables can't be used
 */
export function chooseFramework(env: Readonly<Record<string, string | undefined>>): Framework {
  const { SUI_FRAMEWORK_DIR: dir, FRAMEWORK: mode } = env;
  if (mode !== undefined && mode !== '' && mode !== 'fetch') {
    throw new ConfigError('FRAMEWORK must be "fetch" or unset');
  }
  if (mode === 'fetch') {
    if (dir) throw new ConfigError('set SUI_FRAMEWORK_DIR or FRAMEWORK=fetch, not both');
    const fetcher = new LocalPackages(new GitHubMovePackageFetcher());
    return {
      fetcher,
      description: "Sui's framework as fetched from GitHub",
      isStub: false,
      isFetched: true,
      failure: () => fetcher.failure,
    };
  }
  const framework = resolve(dir || FRAMEWORK_STUB);
  for (const name of ['move-stdlib', 'sui-framework']) {
    if (!existsSync(join(framework, name, 'Move.toml'))) {
      throw new ConfigError(
        `SUI_FRAMEWORK_DIR=${dir}: there is no ${name}/Move.toml; it must be a folder like crates/sui-framework/packages of Sui`,
      );
    }
  }
  // Every framework that a chain runs has this file, but the stub does not.
  const isStub = !existsSync(join(framework, 'sui-framework/sources/kiosk/kiosk.move'));
  return {
    fetcher: new LocalPackages(new FrameworkFolder(framework)),
    description: isStub
      ? `a stub of Sui's framework, not its sources${IS_CLONE ? ' (src/devnet/move_framework/README.md)' : ''}`
      : `Sui's framework in ${framework}`,
    isStub,
    isFetched: false,
  };
}

/** Serves the framework's packages from a folder, whatever the requested revision. */
class FrameworkFolder implements MovePackageFetcher {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  async fetch(url: string, _revision: string, subdir = ''): Promise<Record<string, string>> {
    const name = basename(subdir);
    if (name !== 'move-stdlib' && name !== 'sui-framework') {
      throw new Error(`${url} ${subdir} is not among the packages in ${this.#dir}`);
    }
    return withoutTests(readPackage(join(this.#dir, name)));
  }

  async fetchFile(): Promise<null> {
    return null;
  }

  getResolvedSha(): undefined {
    return undefined;
  }
}

/** Adds the packages that a Move.toml in `move/` names by a path: see `packageAtPath`. */
class LocalPackages implements MovePackageFetcher {
  /**
   * Reason why the framework was not fetched. The compiler's own report resembles that of a mistake in the
   * code.
   */
  failure: string | undefined;
  readonly #framework: MovePackageFetcher;

  constructor(framework: MovePackageFetcher) {
    this.#framework = framework;
  }

  async fetch(url: string, revision: string, subdir?: string) {
    try {
      return await this.#framework.fetch(url, revision, subdir);
    } catch (error) {
      this.failure = `${url}: ${causeCode(error) ?? (error as Error).message}`;
      throw error;
    }
  }

  fetchFile(url: string, revision: string, path: string) {
    return this.#framework.fetchFile(url, revision, path);
  }

  getResolvedSha(url: string, revision: string) {
    return this.#framework.getResolvedSha(url, revision);
  }

  async fetchLocal(path: string): Promise<Record<string, string>> {
    const name = packageAtPath(path);
    if (name === undefined) {
      throw new Error(
        `a local dependency must be ../<package of move/>, or the framework's package enclave or feed, not ${path}`,
      );
    }
    return sourcesForDependents(name);
  }
}

/** Returns the packages in `move/` of the project, by the names of their folders. */
export function packageNames(): string[] {
  return [...findProject().movePackages().keys()];
}

/** The framework's own packages, by the names of their folders. */
const FRAMEWORK_PACKAGES = new Map(
  [ENCLAVE_PACKAGE, FEED_PACKAGE].map((folder) => [basename(folder), folder]),
);

/** Returns the folders in `move/`, and the folders of the framework's own packages. */
function folders(project: Project): ReadonlyMap<string, string> {
  return new Map([...FRAMEWORK_PACKAGES, ...project.movePackages()]);
}

/** @throws SuiCommandError: MOVE */
function packageDir(name: string): string {
  const folder = folders(findProject()).get(name);
  if (folder === undefined) throw new SuiCommandError('MOVE', `there is no package ${name} in move/`);
  return folder;
}

/**
 * Returns the name of the package at a path; undefined if no package is there.
 *
 * @param path path by which a Move.toml in `move/` names a local dependency: `../enclave`, or in an author's
 *   repository `../../node_modules/sui-enclave-toolchain/move/enclave`
 */
export function packageAtPath(path: string, project = findProject()): string | undefined {
  const target = resolveLinks(resolve(project.root, 'move/any', path));
  const [name] = [...folders(project)].find(([, folder]) => resolveLinks(folder) === target) ?? [];
  if (name !== undefined) return name;
  // The framework's packages name each other by a path from their own folder.
  const [, sibling = ''] = /^\.\.\/(\w+)\/?$/.exec(path) ?? [];
  return FRAMEWORK_PACKAGES.has(sibling) ? sibling : undefined;
}

/** Returns the real path of a folder, since installed packages may be links. */
function resolveLinks(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Returns the sources of a package, without tests, to compile its dependents. */
export function sourcesForDependents(name: string): Record<string, string> {
  return withoutTests(readPackage(packageDir(name)));
}

/** Names of manifests. In `Published.toml`, tools record the address of a published package. */
const MANIFESTS = ['Move.toml', 'Move.lock', 'Published.toml'];

function readPackage(dir: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const isSource = MANIFESTS.includes(path) || path.endsWith('.move');
    if (isSource && !path.startsWith('build/')) files[path] = readFileSync(join(dir, path), 'utf8');
  }
  return files;
}

/** Returns the sources without tests, as dependents see them. */
function withoutTests(sources: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(sources).filter(([path]) => !path.startsWith('tests/')));
}

/** Creates the error for a package of `move/` that was not compiled. */
export function compilerError(name: string, output: string, framework: Framework): SuiCommandError {
  const failure = framework.failure?.();
  if (failure === undefined) {
    const message = `move/${name} does not compile:\n${explainCompiler(output, framework)}`;
    return new SuiCommandError('MOVE', message);
  }
  return new SuiCommandError(
    'FRAMEWORK_UNREACHABLE',
    `Sui's framework can't be fetched (${failure}), so move/${name} was not compiled: check the network, or set SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui`,
  );
}

/** Returns the compiler's output, with advice if only a part of the framework is missing. */
export function explainCompiler(output: string, { isStub }: Framework): string {
  // The text names a module, or a method or macro of a type that is built in or belongs to the framework.
  const lacksFramework =
    /\bunbound\b.*\b(sui|std)::/i.test(output) ||
    /No known method '\w+' on type '(?:&(?:mut )?)?(?:(?:sui|std)::|u\d+'|vector<|bool'|address')/.test(
      output,
    );
  if (!isStub || !lacksFramework) return output;
  return `${output.trimEnd()}\n\nThe stub of Sui's framework lacks this: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui.\n`;
}

export interface Build {
  /** Bytecode of the modules in base64. */
  readonly modules: readonly string[];
  /** Ids of the packages that the modules link to. */
  readonly dependencies: readonly string[];
  /** Output of the compiler and its lints; empty if there is none. */
  readonly warnings: string;
}

/**
 * Compiles a package in the same way as `sui move build`, with every lint. Unpublished dependencies become
 * part of it.
 *
 * @throws SuiCommandError: MOVE, with the compiler's message, or FRAMEWORK_UNREACHABLE
 */
export async function buildPackage(name: string, framework: Framework): Promise<Build> {
  await initMovePackageBuilder();
  const compiled = await dumpMovePackage({
    files: readPackage(packageDir(name)),
    fetcher: framework.fetcher,
    network: 'testnet',
    lintFlag: 'all',
    ansiColor: false,
    withUnpublishedDependencies: true,
  });
  if ('error' in compiled) throw compilerError(name, compiled.error, framework);
  const { modules, dependencies, warnings = '' } = compiled;
  return { modules, dependencies, warnings };
}

/**
 * Matches files of tests that call a native function which the WebAssembly VM lacks. `sui move test` runs
 * them.
 */
const NEEDS_CLI = /_cli_tests\.move$/;

export interface TestRun {
  readonly passed: boolean;
  /** The report of the Move test runner, or of the compiler. */
  readonly output: string;
  /** Files that were left out, because only `sui move test` can run their tests. */
  readonly leftOut: readonly string[];
}

/**
 * Runs the unit tests of a package. The report includes warnings and lints.
 *
 * @param name of a folder in `move/`
 * @param options.extra further test files, by path in the package
 * @param options.withCliTests whether to include tests that need the Sui CLI, which fail here
 */
export async function testPackage(
  name: string,
  framework: Framework,
  { extra = {}, withCliTests = false }: { extra?: Sources; withCliTests?: boolean } = {},
): Promise<TestRun> {
  const sources = readPackage(packageDir(name));
  const leftOut = withCliTests ? [] : Object.keys(sources).filter((path) => NEEDS_CLI.test(path));
  for (const path of leftOut) delete sources[path];
  await initMovePackageBuilder();
  const outcome = await testMovePackage({
    files: { ...sources, ...extra },
    fetcher: framework.fetcher,
    network: 'testnet',
    lintFlag: 'all',
    ansiColor: false,
  });
  if ('error' in outcome && framework.failure?.()) throw compilerError(name, outcome.error, framework);
  const { passed, output } = 'error' in outcome ? { passed: false, output: outcome.error } : outcome;
  return { passed, output: passed ? output : explainCompiler(output, framework), leftOut };
}
