/**
 * Loads a page of this repository from the static files that `src/console/build.ts` makes. In a clone, if the
 * files are missing or older than their sources, a process of its own builds them. Only the page itself waits
 * for this build.
 */
import { execFile } from 'node:child_process';
import { globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { CLONE, IS_CLONE } from 'sui-enclave-cli/places';

const BUILD = 'src/console/build.ts';
/** Sources that all pages have, besides npm packages. */
const SHARED = ['src/console/**/*', 'src/library/**/*.ts', 'package-lock.json'];

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

/** Files of the page by path, and the headers to send with each. */
export interface Site {
  readonly headers: Readonly<Record<string, string>>;
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * Returns the page's files. They are kept in memory, since another command may build them again in the
 * meantime.
 *
 * @param folder of the files
 * @param source folder of the page's source, from the root of the clone
 */
export async function loadSite(folder: string, source: string): Promise<Site> {
  await build(folder, source);
  const headers: Record<string, string> = JSON.parse(readFileSync(join(folder, 'headers.json'), 'utf8'));
  return { headers, files: readFiles(folder) };
}

function readFiles(folder: string): Map<string, Buffer> {
  return new Map(listFiles(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Returns the paths of a folder's files, relative to the folder. Does not follow links. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Builds the page of a clone, unless it is newer than all of its sources. */
async function build(folder: string, source: string): Promise<void> {
  if (!IS_CLONE) return;
  const builtAt = readChangeTime(join(folder, 'headers.json'));
  const sources = [...SHARED, `${source}/**/*`].flatMap((pattern) => globSync(pattern, { cwd: CLONE }));
  if (builtAt > Math.max(...sources.map((file) => readChangeTime(join(CLONE, file))))) return;
  await promisify(execFile)(process.execPath, [BUILD, folder, source], { cwd: CLONE });
}

/** Returns when a file changed, in milliseconds since 1970; 0 if it does not exist. */
const readChangeTime = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Returns the path of a request without its first slash. The path of the page itself is `index.html`. */
export const readPath = (url = '') => url.replace(/[?#].*$/s, '').slice(1) || 'index.html';

export function sendFile(response: ServerResponse, path: string, content: Buffer | string): void {
  response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
  response.setHeader('cache-control', 'no-cache').end(content);
}

/** Returns the page with an element inserted at the beginning of its head. */
export function insertIntoHead({ files }: Site, element: string): string {
  return (files.get('index.html')?.toString() ?? '').replace('<head>', () => `<head>\n${element}`);
}
