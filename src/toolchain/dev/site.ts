/**
 * A page of this repository, as `src/console/build.ts` makes static files of it. In a clone they are built by
 * a process of its own when they are missing or older than their sources, so that nothing waits for them but
 * the page itself.
 */
import { execFile } from 'node:child_process';
import { globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { CLONE, IS_CLONE } from 'sui-enclave-cli/places';

const BUILD = 'src/console/build.ts';
/** Sources of every page, besides npm packages. */
const SHARED = ['src/console/**/*', 'src/library/**/*.ts', 'package-lock.json'];

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

/** The files of the page by path, and the headers that each is sent with. */
export interface Site {
  readonly headers: Readonly<Record<string, string>>;
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * Returns the page's files, kept in memory: another command may build them anew meanwhile.
 *
 * @param folder of the files
 * @param source of the page, from the root of the clone
 */
export async function loadSite(folder: string, source: string): Promise<Site> {
  await build(folder, source);
  const headers: Record<string, string> = JSON.parse(readFileSync(join(folder, 'headers.json'), 'utf8'));
  return { headers, files: readFiles(folder) };
}

function readFiles(folder: string): Map<string, Buffer> {
  return new Map(listFiles(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Returns the paths of a folder's files, from that folder. Links are not followed. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Builds the page in a clone, unless it is newer than all of its sources. */
async function build(folder: string, source: string): Promise<void> {
  if (!IS_CLONE) return;
  const made = changed(join(folder, 'headers.json'));
  const sources = [...SHARED, `${source}/**/*`].flatMap((pattern) => globSync(pattern, { cwd: CLONE }));
  if (made > Math.max(...sources.map((file) => changed(join(CLONE, file))))) return;
  await promisify(execFile)(process.execPath, [BUILD, folder, source], { cwd: CLONE });
}

/** In milliseconds since 1970; 0 for a file that does not exist. */
const changed = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** The path of a request, without its first slash; that of the page itself is `index.html`. */
export const readPath = (url = '') => url.replace(/[?#].*$/s, '').slice(1) || 'index.html';

export function sendFile(response: ServerResponse, path: string, content: Buffer | string): void {
  response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
  response.setHeader('cache-control', 'no-cache').end(content);
}

/** Returns the page, with an element at the beginning of its head. */
export function pageWith({ files }: Site, element: string): string {
  return (files.get('index.html')?.toString() ?? '').replace('<head>', () => `<head>\n${element}`);
}
