/**
 * Runs the Move compiler in a process of its own: macros that call macros can keep it busy for hours, even in
 * a file of 1 KB.
 */
import {
  dumpMovePackage,
  initMovePackageBuilder,
  type MovePackageFetcher,
} from '@zktx.io/sui-move-builder/full';
import type { BuildNetwork } from '../move/bytecode.ts';
import { type Ask, type Bounds, computeApart } from './apart.ts';

/** Maximum length of the compiler's error message, in characters. */
const MAX_ERROR = 2000;

/** A package, and the network from which its dependencies take their addresses. */
export interface MovePackage {
  /** File contents by path in the package. */
  readonly files: Readonly<Record<string, string>>;
  readonly network: BuildNetwork;
}

export type Compiled =
  | {
      /** Modules in base64, without those of published dependencies. */
      readonly modules: readonly string[];
      /** Ids of the packages that the modules link to. */
      readonly dependencies: readonly string[];
    }
  | {
      /** The compiler's message, which contains names that the author chose. */
      readonly error: string;
    };

type Request =
  | {
      readonly kind: 'fetch';
      readonly url: string;
      readonly revision: string;
      readonly folder: string | undefined;
    }
  | { readonly kind: 'file'; readonly url: string; readonly revision: string; readonly path: string }
  | { readonly kind: 'local'; readonly path: string };

/** Fetched content, with the commit of its revision if that is known. */
interface Fetched<T> {
  readonly content: T;
  readonly commit: string | undefined;
}

/**
 * Compiles a package in a process of its own.
 *
 * @param fetcher fetches the dependencies in this process; the time limit does not count fetching
 * @throws AuditError: SOURCE_TOO_LARGE
 */
export async function compileApart(
  order: MovePackage,
  fetcher: MovePackageFetcher,
  bounds?: Bounds,
): Promise<Compiled> {
  const task = { module: import.meta.url, name: 'compileOrder' };
  const answer: Ask = async (request) => await answerRequest(request as Request, fetcher);
  return await computeApart('compiling the Move packages', task, order, { bounds, answer });
}

async function answerRequest(request: Request, fetcher: MovePackageFetcher): Promise<Fetched<unknown>> {
  if (request.kind === 'local') {
    const context = { dependencyName: '', parentPackageName: '', network: 'testnet' } as const;
    return { content: await fetcher.fetchLocal?.(request.path, context), commit: undefined };
  }
  const { url, revision } = request;
  const content =
    request.kind === 'file'
      ? await fetcher.fetchFile(url, revision, request.path)
      : await fetcher.fetch(url, revision, request.folder);
  return { content, commit: fetcher.getResolvedSha(url, revision) };
}

/** Compiles a package; runs in the child process. */
export async function compileOrder(order: unknown, ask: Ask): Promise<Compiled> {
  const commits = new Map<string, string | undefined>();
  const key = (url: string, revision: string) => `${url} ${revision}`;
  const get = async <T>(request: Request): Promise<T> => {
    const { content, commit } = (await ask(request)) as Fetched<T>;
    if (request.kind !== 'local') commits.set(key(request.url, request.revision), commit);
    return content;
  };
  await initMovePackageBuilder();
  const compiled = await dumpMovePackage({
    ...(order as { files: Record<string, string>; network: BuildNetwork }),
    fetcher: {
      fetch: async (url, revision, folder) => await get({ kind: 'fetch', url, revision, folder }),
      fetchFile: async (url, revision, path) => await get({ kind: 'file', url, revision, path }),
      fetchLocal: async (path) => await get({ kind: 'local', path }),
      getResolvedSha: (url, revision) => commits.get(key(url, revision)),
    },
    ansiColor: false,
    withUnpublishedDependencies: true,
  });
  if ('error' in compiled) return { error: compiled.error.slice(0, MAX_ERROR) };
  const { modules, dependencies } = compiled;
  return { modules, dependencies };
}
