/** Compiles the Move packages of a commit, as they were published. */
import { existsSync, globSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { withoutSelfAddress } from 'sui-enclave-move-bytecode/self_address';
import { ENCLAVE_PACKAGE } from '../places.ts';
import { printable } from '../printable.ts';
import { BUILD_NETWORKS } from '../sui/bytecode.ts';
import type { Chain } from '../sui/chain.ts';
import type { Framework } from '../sui/move_packages.ts';
import type { Bounds } from './apart.ts';
import { compileApart } from './compile_process.ts';
import { type AuditCode, AuditError } from './errors.ts';

/** Of a Move package: the chain takes far smaller ones alone. */
const MAX_SOURCE_BYTES = 2_000_000;

/** Of a commit: compiling each may take the time of its bounds. */
const MAX_PACKAGES = 20;

/** Compiled modules by name, without the package's own id. */
export type Modules = ReadonlyMap<string, Uint8Array>;

/**
 * Compiles the sources of a commit. The compiler runs in WebAssembly, in a process of its own, and gets its files from here
 * alone.
 */
export class Compiler {
  readonly #framework: Framework;
  readonly #network: (typeof BUILD_NETWORKS)[number];
  readonly #packages: ReadonlyMap<string, string>;
  readonly #linked: string | undefined;
  readonly #bounds: Bounds | undefined;

  /** @param linked the id of the package `enclave`, if it is not in that of the application */
  constructor(
    framework: Framework,
    { network }: Pick<Chain, 'network'>,
    packages: ReadonlyMap<string, string>,
    linked: string | undefined,
    bounds?: Bounds,
  ) {
    this.#framework = framework;
    this.#network = BUILD_NETWORKS.find((name) => name === network) ?? 'devnet';
    this.#packages = packages;
    this.#linked = linked;
    this.#bounds = bounds;
  }

  async enclave(): Promise<Modules> {
    return await this.#compile('enclave', sourcesIn(ENCLAVE_PACKAGE));
  }

  /** @param module of the application's type @throws AuditError: BYTECODE_UNKNOWN, SOURCE_TOO_LARGE, NOT_FULLY_CHECKED */
  async application(module: string): Promise<Modules> {
    if (this.#packages.size > MAX_PACKAGES) {
      throw new AuditError('SOURCE_TOO_LARGE', `move/ of the commit has more than ${MAX_PACKAGES} packages`);
    }
    const failures: AuditError[] = [];
    for (const [name, folder] of this.#packages) {
      const sources = sourcesIn(folder);
      const declares = new RegExp(`\\bmodule\\s+\\w+::${module}\\b`);
      if (name === 'enclave' || !Object.values(sources).some((text) => declares.test(text))) continue;
      try {
        const modules = await this.#withLocal(name, sources);
        if (modules.has(module)) return modules;
      } catch (error) {
        if (!(error instanceof AuditError) || error.code === 'SOURCE_TOO_LARGE') throw error;
        failures.push(error);
      }
    }
    throw (
      failures[0] ??
      new AuditError(
        'BYTECODE_UNKNOWN',
        `no package in move/ of the commit has the module ${printable(module)}`,
      )
    );
  }

  /** With the packages of `move/` that it depends on: publishing puts them into one package on chain. */
  async #withLocal(name: string, sources: Record<string, string>): Promise<Modules> {
    const waiting = [name];
    const done = new Set<string>();
    const modules = new Map<string, Uint8Array>();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (done.has(next)) continue;
      done.add(next);
      const files = next === name ? sources : sourcesIn(this.#packages.get(next) ?? '');
      for (const [own, bytes] of await this.#compile(next, files)) modules.set(own, bytes);
      const paths = (files['Move.toml'] ?? '').matchAll(/\blocal\s*=\s*["']([^"']+)["']/g);
      for (const [, path = ''] of paths) {
        const local = isEnclave(path) ? undefined : nameOf(path);
        if (local !== undefined && this.#packages.has(local)) waiting.push(local);
      }
    }
    return modules;
  }

  async #compile(name: string, files: Record<string, string>): Promise<Modules> {
    const result = await compileApart({ files, network: this.#network }, this.#fetcher(), this.#bounds);
    if ('error' in result) {
      if (this.#framework.failure?.() !== undefined) {
        throw new AuditError(
          'NOT_FULLY_CHECKED',
          "Sui's framework can't be fetched: the packages were not compiled",
        );
      }
      const why = printable(result.error.trim().split('\n')[0] ?? '', 300);
      // The stub lacks what Sui's framework may have.
      const code: AuditCode = this.#framework.isStub ? 'NOT_FULLY_CHECKED' : 'BYTECODE_UNKNOWN';
      throw new AuditError(
        code,
        `move/${printable(name)} does not compile against ${this.#framework.description}: ${why}`,
      );
    }
    return new Map(
      result.modules.map((text) => {
        const bytes = new Uint8Array(Buffer.from(text, 'base64'));
        return [readModule(bytes).name, withoutSelfAddress(bytes).module] as const;
      }),
    );
  }

  #fetcher() {
    const { fetcher } = this.#framework;
    return {
      fetch: (url: string, revision: string, subdir?: string) => fetcher.fetch(url, revision, subdir),
      fetchFile: (url: string, revision: string, path: string) => fetcher.fetchFile(url, revision, path),
      getResolvedSha: (url: string, revision: string) => fetcher.getResolvedSha(url, revision),
      fetchLocal: async (path: string) => this.#local(path),
    };
  }

  /** A dependency on the package of the framework, or on another one in `move/`. */
  #local(path: string): Record<string, string> {
    if (isEnclave(path)) return { ...sourcesIn(ENCLAVE_PACKAGE), ...this.#published() };
    const folder = this.#packages.get(nameOf(path) ?? '');
    if (folder === undefined) throw new Error(`a local dependency must be in move/, not ${printable(path)}`);
    return sourcesIn(folder);
  }

  /** Where the dependents of a package that is on chain already find it. */
  #published(): Record<string, string> {
    if (this.#linked === undefined) return {};
    const lines = [
      `[published.${this.#network}]`,
      'chain-id = "00000000"',
      `published-at = "${this.#linked}"`,
      `original-id = "${this.#linked}"`,
      'version = 1',
      '',
    ];
    return { 'Published.toml': lines.join('\n') };
  }
}

/** Whether a path of a Move.toml leads to the package of the framework: of a clone, or of the installed program. */
function isEnclave(path: string): boolean {
  return /^(?:\.\.|.*\/sui-enclave-cli\/move)\/enclave\/?$/.test(path);
}

/** Of another package in `move/`. */
function nameOf(path: string): string | undefined {
  return /^\.\.\/([A-Za-z0-9_-]+)\/?$/.exec(path)?.[1];
}

/** Of a package, without its tests and without what was noted of its publications. */
function sourcesIn(folder: string): Record<string, string> {
  const root = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const paths = globSync(['Move.toml', 'sources/**/*.move'], { cwd: root }).sort();
  const files = paths.filter((path) => lstatSync(join(root, path)).isFile());
  const bytes = files.reduce((sum, path) => sum + lstatSync(join(root, path)).size, 0);
  if (bytes > MAX_SOURCE_BYTES) {
    throw new AuditError(
      'BYTECODE_UNKNOWN',
      `a package in move/ has more than ${MAX_SOURCE_BYTES} bytes of sources`,
    );
  }
  return Object.fromEntries(files.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}
