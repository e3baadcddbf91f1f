/**
 * Replaces the Move compiler's npm package in tests, which compile the same few packages hundreds of times,
 * each time for half a second. Compilations are kept in build/test/move. One is reused if the
 * compiler, the package, the options and all answers of the fetcher are the same.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as builder from '../node_modules/@zktx.io/sui-move-builder/dist/full/index.js';

export * from '../node_modules/@zktx.io/sui-move-builder/dist/full/index.js';

type Options = Parameters<typeof builder.dumpMovePackage>[0];
type Dump = Awaited<ReturnType<typeof builder.dumpMovePackage>>;
type Fetcher = NonNullable<Options['fetcher']>;

/** A call of the fetcher. */
interface Call {
  readonly method: 'fetch' | 'fetchFile' | 'fetchLocal';
  readonly args: readonly unknown[];
  /** Digest of the answer, in hex. */
  readonly answer: string;
}

interface Compilation {
  readonly calls: readonly Call[];
  readonly result: Dump;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'build/test/move');
const { version } = JSON.parse(
  readFileSync(join(ROOT, 'node_modules/@zktx.io/sui-move-builder/package.json'), 'utf8'),
) as { version: string };

const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** Does nothing: `dumpMovePackage` loads the compiler itself if no recorded compilation fits. */
export async function initMovePackageBuilder(): Promise<void> {}

export async function dumpMovePackage({ fetcher, ...options }: Options): Promise<Dump> {
  const path = join(FOLDER, `${digest([version, options])}.json`);
  const recordedCompilations = read(path);
  for (const { calls, result: dump } of recordedCompilations)
    if (await hasSameAnswers(fetcher, calls)) return dump;

  const calls: Call[] = [];
  const dump = await builder.dumpMovePackage({
    ...options,
    ...(fetcher !== undefined && { fetcher: recordCalls(fetcher, calls) }),
  });
  // An error may come from a call of the fetcher that failed. Such calls are not recorded.
  if (!('error' in dump)) write(path, [...recordedCompilations, { calls, result: dump }]);
  return dump;
}

/**
 * Reads the recorded compilations of one package with one set of options, which differ in the fetcher's
 * answers.
 */
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

/** Hashes fetched content and its commit, which is known once the revision is fetched. */
const hashAnswer = (fetcher: Fetcher, [url, revision]: readonly unknown[], content: unknown) =>
  digest([content, fetcher.getResolvedSha(String(url), String(revision))]);

/** Returns whether the fetcher still gives the recorded answers. */
async function hasSameAnswers(fetcher: Fetcher | undefined, calls: readonly Call[]): Promise<boolean> {
  if (fetcher === undefined) return calls.length === 0;
  try {
    for (const { method, args, answer } of calls) {
      if (hashAnswer(fetcher, args, await call(fetcher, method, args)) !== answer) return false;
    }
    return true;
  } catch {
    // The compiler will get this failure too.
    return false;
  }
}

/** Returns a fetcher that adds its calls to the list. */
function recordCalls(fetcher: Fetcher, calls: Call[]): Fetcher {
  const record =
    (method: Call['method']) =>
    async (...args: unknown[]): Promise<never> => {
      const content = await call(fetcher, method, args);
      calls.push({ method, args, answer: hashAnswer(fetcher, args, content) });
      return content as never;
    };
  return {
    fetch: record('fetch'),
    fetchFile: record('fetchFile'),
    ...(fetcher.fetchLocal !== undefined && { fetchLocal: record('fetchLocal') }),
    getResolvedSha: (url, revision) => fetcher.getResolvedSha(url, revision),
  };
}
