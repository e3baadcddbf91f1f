/**
 * The Move compiler's npm package, for tests: they compile the same few packages hundreds of times, each time
 * for half a second. A result is kept in build/test/move, and taken again if the compiler, the package, the
 * options and all that the fetcher gives are the same.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as builder from '../node_modules/@zktx.io/sui-move-builder/dist/full/index.js';

export * from '../node_modules/@zktx.io/sui-move-builder/dist/full/index.js';

type Input = Parameters<typeof builder.dumpMovePackage>[0];
type Result = Awaited<ReturnType<typeof builder.dumpMovePackage>>;
type Fetcher = NonNullable<Input['fetcher']>;

/** One of the fetcher, and the digest of its answer. */
interface Call {
  readonly method: 'fetch' | 'fetchFile' | 'fetchLocal';
  readonly args: readonly unknown[];
  readonly answer: string;
}

interface Compilation {
  readonly calls: readonly Call[];
  readonly result: Result;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'build/test/move');
const { version } = JSON.parse(
  readFileSync(join(ROOT, 'node_modules/@zktx.io/sui-move-builder/package.json'), 'utf8'),
) as { version: string };

const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** `dumpMovePackage` loads the compiler itself, if no result is there. */
export async function initMovePackageBuilder(): Promise<void> {}

export async function dumpMovePackage({ fetcher, ...input }: Input): Promise<Result> {
  const path = join(FOLDER, `${digest([version, input])}.json`);
  const kept = read(path);
  for (const { calls, result } of kept) if (await answersAsBefore(fetcher, calls)) return result;

  const calls: Call[] = [];
  const result = await builder.dumpMovePackage({
    ...input,
    ...(fetcher !== undefined && { fetcher: recorded(fetcher, calls) }),
  });
  // An error may be for a fetcher that failed, of which nothing is recorded.
  if (!('error' in result)) write(path, [...kept, { calls, result }]);
  return result;
}

/** One for each set of answers. */
function read(path: string): readonly Compilation[] {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : [];
}

/** Renames the complete file, since another process may read or write it. */
function write(path: string, compilations: readonly Compilation[]): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(compilations));
  renameSync(`${path}.${process.pid}`, path);
}

async function call(fetcher: Fetcher, method: Call['method'], args: readonly unknown[]): Promise<unknown> {
  const answer = fetcher[method] as (...args: unknown[]) => Promise<unknown>;
  return await answer.apply(fetcher, [...args]);
}

/** The commit of a revision is known once it is fetched. */
const answerDigest = (fetcher: Fetcher, [url, revision]: readonly unknown[], content: unknown) =>
  digest([content, fetcher.getResolvedSha(String(url), String(revision))]);

async function answersAsBefore(fetcher: Fetcher | undefined, calls: readonly Call[]): Promise<boolean> {
  if (fetcher === undefined) return calls.length === 0;
  try {
    for (const { method, args, answer } of calls) {
      if (answerDigest(fetcher, args, await call(fetcher, method, args)) !== answer) return false;
    }
    return true;
  } catch {
    // The compiler gets this failure, too.
    return false;
  }
}

function recorded(fetcher: Fetcher, calls: Call[]): Fetcher {
  const record =
    (method: Call['method']) =>
    async (...args: unknown[]): Promise<never> => {
      const content = await call(fetcher, method, args);
      calls.push({ method, args, answer: answerDigest(fetcher, args, content) });
      return content as never;
    };
  return {
    fetch: record('fetch'),
    fetchFile: record('fetchFile'),
    ...(fetcher.fetchLocal !== undefined && { fetchLocal: record('fetchLocal') }),
    getResolvedSha: (url, revision) => fetcher.getResolvedSha(url, revision),
  };
}
