/**
 * Compiles Move packages as they were published. The compiler runs in WebAssembly, in a process of its own,
 * and gets its files only from this module.
 */
import type { MovePackageFetcher } from '@zktx.io/sui-move-builder/full';
import { printable } from 'sui-enclave-cli/printable';
import type { Chain } from 'sui-enclave-cli/sui/chain';
import { readModule } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { withoutSelfAddress } from 'sui-enclave-devnet/bytecode/self_address';
import { BUILD_NETWORKS, type BuildNetwork } from '../move/bytecode.ts';
import type { Framework, Sources } from '../move/packages.ts';
import { ENCLAVE_PACKAGE, FEED_PACKAGE } from '../places.ts';
import type { Bounds } from './apart.ts';
import { type Compiled, compileApart } from './compile_process.ts';
import { type AuditCode, AuditError } from './errors.ts';
import { sourcesIn } from './move_sources.ts';

/** Modules by name, with zeros in place of their package's id. */
export type Modules = ReadonlyMap<string, Uint8Array>;

export interface CompiledModule {
  /** Address of the module's package in the sources; zero for an unpublished package. */
  readonly address: string;
  readonly name: string;
  /** Bytecode with zeros in place of the address. */
  readonly bytes: Uint8Array;
}

/** Input of the compiler. */
interface CompilerInput {
  readonly files: Sources;
  /** The packages that local dependencies may name, by folder name. */
  readonly local: Readonly<Record<string, Sources>>;
  readonly network: BuildNetwork;
}

/** Runs the compiler on sources. @throws AuditError: SOURCE_TOO_LARGE */
async function compileSources(
  { files, local, network }: CompilerInput,
  fetcher: MovePackageFetcher,
  bounds: Bounds | undefined,
): Promise<Compiled> {
  const fetchLocal = async (path: string) => {
    const name = folderAt(path) ?? '';
    const sources = Object.hasOwn(local, name) ? local[name] : undefined;
    if (sources === undefined) throw new Error(`a local dependency must be in move/, not ${printable(path)}`);
    return { ...sources };
  };
  return await compileApart(
    { files, network },
    {
      fetch: (url, revision, subdir) => fetcher.fetch(url, revision, subdir),
      fetchFile: (url, revision, path) => fetcher.fetchFile(url, revision, path),
      getResolvedSha: (url, revision) => fetcher.getResolvedSha(url, revision),
      fetchLocal,
    },
    bounds,
  );
}

/**
 * Returns a fetcher that checks each request before it sends it.
 *
 * @param check gets address, revision and path of each request, and throws to refuse a request
 */
function filterRequests(fetcher: MovePackageFetcher, check: (request: string) => void): MovePackageFetcher {
  return {
    async fetch(url, revision, subdir) {
      check([url, revision, subdir].filter(Boolean).join(' '));
      return await fetcher.fetch(url, revision, subdir);
    },
    async fetchFile(url, revision, path) {
      check(`${url} ${revision} ${path}`);
      return await fetcher.fetchFile(url, revision, path);
    },
    getResolvedSha: (url, revision) => fetcher.getResolvedSha(url, revision),
  };
}

/**
 * Returns the folder in `move/` that a local dependency of a Move.toml names. Returns `enclave` or `feed` for
 * a package of the framework.
 */
export function folderAt(path: string): string | undefined {
  // The framework's packages are in a clone, or in the installed program.
  const [, released] = /^.*\/sui-enclave-toolchain\/move\/(enclave|feed)\/?$/.exec(path) ?? [];
  return released ?? /^\.\.\/([A-Za-z0-9_-]+)\/?$/.exec(path)?.[1];
}

/** Packages that a compiled package may link to. */
export interface Linked {
  /** Sources of all packages that the compiler may read, by folder name. */
  readonly folders: ReadonlyMap<string, Sources>;
  /**
   * Original ids of the packages that are on chain by themselves, by folder name. All other folders become
   * part of the compiled package.
   */
  readonly published: ReadonlyMap<string, string>;
}

export class Compiler {
  readonly framework: Framework;
  /** Requests for what `enclave` needs: Sui's framework, in the revision that the compiler chooses. */
  readonly #enclaveRequests = new Set<string>();
  readonly #network: BuildNetwork;
  readonly #bounds: Bounds | undefined;

  constructor(framework: Framework, { network }: Pick<Chain, 'network'>, bounds?: Bounds) {
    this.framework = framework;
    this.#bounds = bounds;
    this.#network = BUILD_NETWORKS.find((name) => name === network) ?? 'devnet';
  }

  /** Returns the modules of this program's `enclave`. @throws as `compile` does */
  async enclave(): Promise<Modules> {
    const noLinks = { folders: new Map(), published: new Map() };
    const { fetcher } = this.framework;
    const recordingFetcher = filterRequests(fetcher, (request) => this.#enclaveRequests.add(request));
    const compiled = await this.#compile('enclave', sourcesIn(ENCLAVE_PACKAGE), noLinks, recordingFetcher);
    return new Map(compiled.map(({ name, bytes }) => [name, bytes]));
  }

  /**
   * Returns the modules of this program's `feed`, as a part of the package of `enclave`.
   *
   * @throws as `compile` does
   */
  async feed(): Promise<Modules> {
    const noLinks = { folders: new Map(), published: new Map() };
    const compiled = await this.compile('feed', sourcesIn(FEED_PACKAGE), noLinks);
    return new Map(compiled.map(({ name, bytes }) => [name, bytes]));
  }

  /**
   * Returns the modules of one package, without those of its dependencies.
   *
   * Fetches only packages that `enclave` needs: a fork of the framework could change what its macros compile
   * to, and a branch elsewhere could change at any time.
   *
   * @param name of the package's folder in `move/`
   * @throws AuditError: BYTECODE_UNKNOWN, if the package does not compile; NOT_FULLY_CHECKED, if the
   *   framework may be the cause, or if the package depends on a package that the commit does not contain
   */
  async compile(name: string, files: Sources, linked: Linked): Promise<CompiledModule[]> {
    const { fetcher, isFetched } = this.framework;
    if (!isFetched) return await this.#compile(name, files, linked, fetcher);
    let foreignRequest: string | undefined;
    const limitedFetcher = filterRequests(fetcher, (request) => {
      if (this.#enclaveRequests.has(request)) return;
      foreignRequest ??= request;
      throw new Error('the request is not for a package that enclave needs');
    });
    const createRefusal = () =>
      new AuditError(
        'NOT_FULLY_CHECKED',
        `move/${printable(name)} depends on ${printable(String(foreignRequest), 300)}, which the commit does not contain, and which is not the revision of Sui's framework that this program compiles against: to compare with another revision, set SUI_FRAMEWORK_DIR to a copy that you trust`,
      );
    try {
      const modules = await this.#compile(name, files, linked, limitedFetcher);
      if (foreignRequest !== undefined) throw createRefusal();
      return modules;
    } catch (error) {
      throw foreignRequest === undefined ? error : createRefusal();
    }
  }

  async #compile(
    name: string,
    files: Sources,
    { folders, published }: Linked,
    fetcher: MovePackageFetcher,
  ): Promise<CompiledModule[]> {
    const allSources = new Map([
      ['feed', sourcesIn(FEED_PACKAGE)] as const,
      ...folders,
      ['enclave', sourcesIn(ENCLAVE_PACKAGE)] as const,
    ]);
    const local = [...allSources].map(([folder, sources]): [string, Sources] => {
      const original = published.get(folder);
      return [
        folder,
        original === undefined ? sources : { ...sources, ...this.#createPublishedFile(original) },
      ];
    });
    const network = this.#network;
    const compiled = await compileSources(
      { files, local: Object.fromEntries(local), network },
      fetcher,
      this.#bounds,
    );
    if ('error' in compiled) throw this.#createError(name, compiled.error);
    return compiled.modules.map((text) => {
      const bytes = new Uint8Array(Buffer.from(text, 'base64'));
      const { address, module } = withoutSelfAddress(bytes);
      return { address, name: readModule(bytes).name, bytes: module };
    });
  }

  #createError(name: string, error: string): AuditError {
    const { isStub, description, failure } = this.framework;
    if (failure?.() !== undefined) {
      return new AuditError(
        'NOT_FULLY_CHECKED',
        "Sui's framework can't be fetched: the packages were not compiled",
      );
    }
    // Sui's framework may have functions that the stub lacks.
    const code: AuditCode = isStub ? 'NOT_FULLY_CHECKED' : 'BYTECODE_UNKNOWN';
    const why = printable(error.trim().split('\n')[0] ?? '', 300);
    return new AuditError(code, `move/${printable(name)} does not compile against ${description}: ${why}`);
  }

  /** Returns the file by which dependents find a published package on chain. */
  #createPublishedFile(original: string): Sources {
    const lines = [
      `[published.${this.#network}]`,
      'chain-id = "00000000"',
      `published-at = "${original}"`,
      `original-id = "${original}"`,
      'version = 1',
      '',
    ];
    return { 'Published.toml': lines.join('\n') };
  }
}
