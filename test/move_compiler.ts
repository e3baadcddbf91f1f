/**
 * Replaces the Move compiler's npm package in tests, which compile the same few packages hundreds of times,
 * each time for half a second. Results are kept in build/test/move. A result is reused if the compiler, the
 * package, the options and all answers of the fetcher are the same.
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

/** A call of the fetcher, and the digest of its answer. */
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

/** Does nothing: `dumpMovePackage` loads the compiler itself if it has no result. */
export async function initMovePackageBuilder(): Promise<void> {}

export async function dumpMovePackage({ fetcher, ...input }: Input): Promise<Result> {
  const path = join(FOLDER, `${digest([version, input])}.json`);
  const recordedCompilations = read(path);
  for (const { calls, result } of recordedCompilations)
    if (await answersAsBefore(fetcher, calls)) return result;

  const calls: Call[] = [];
  const result = await builder.dumpMovePackage({
    ...input,
    ...(fetcher !== undefined && { fetcher: recorded(fetcher, calls) }),
  });
  // An error may come from a call of the fetcher that failed. Such calls are not recorded.
  if (!('error' in result)) write(path, [...recordedCompilations, { calls, result }]);
  return result;
}

/** Reads the results of an input: one for each set of the fetcher's answers. */
function read(path: string): readonly Compilation[] {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : [];
}

/** Writes a new file and renames it, since another process may read or write it. */
function write(path: string, compilations: readonly Compilation[]): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(compilations));
  renameSync(`${path}.${process.pid}`, path);
}

async function call(fetcher: Fetcher, method: Call['method'], args: readonly unknown[]): Promise<unknown> {
  const fetchContent = fetcher[method] as (...args: unknown[]) => Promise<unknown>;
  return await fetchContent.apply(fetcher, [...args]);
}

/** Computes the digest of a fetched content and its commit, which is known once the revision is fetched. */
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
    // The compiler will get this failure too.
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
