/**
 * The console of `dev` and `dev_sui`: its static files on loopback. In a clone they are built by a process of its own
 * when they are missing or older than their sources, so that nothing waits for them but the page itself.
 */
import { execFile } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { integer } from 'sui-enclave-service/env';
import { CLONE, CONSOLE, IS_CLONE } from '../places.ts';

const BUILD = 'src/console/build.ts';
/** What the page is made of, besides npm packages. */
const SOURCES = ['src/console/**/*', 'src/library/**/*.ts', 'package-lock.json'];
/** Where a page learns that there is something for it: see `src/console/enclave/development.tsx`. */
const DEVELOPMENT = 'development.json';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface ConsoleOptions {
  readonly port: number;
  /** What the page begins with, such as `#/enclave?url=…`. */
  readonly link: string;
  /** The texts of files that the page offers to compare with, by name. Read at each request. */
  readonly development: () => Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
}

/** The files of the page by path, and the headers that each is sent with. */
interface Site {
  readonly headers: Readonly<Record<string, string>>;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** 0 lets the system choose, so that two commands don't disturb each other. @throws ConfigError */
export function consolePort(env: Readonly<Record<string, string | undefined>>): number {
  return integer(env, 'CONSOLE_PORT', { from: 0, to: 65_535, default: 0 });
}

/** Serves the console and logs its address; a failure is logged too, and changes nothing else. */
export function startConsole(options: ConsoleOptions): { close(): void } {
  const { port, link, log } = options;
  const server = createConsoleServer(options);
  server.once('error', ({ code }: NodeJS.ErrnoException) => {
    log(`There is no console: it can't listen on CONSOLE_PORT: ${code}.`);
  });
  server.listen(port, '127.0.0.1', () => {
    log(`Console:  http://127.0.0.1:${(server.address() as AddressInfo).port}/${link}`);
  });
  // It must not keep a process alive whose server has ended.
  server.unref();
  return {
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function createConsoleServer({ development, log }: ConsoleOptions): Server {
  // Kept in memory: another command may build them anew meanwhile.
  const site = built().then(readSite);
  site.catch((error: Error) => log(`The console can't be built: ${error.message}`));
  return createServer(async ({ method, url = '' }, response) => {
    const path = url.replace(/[?#].*$/s, '').slice(1) || 'index.html';
    try {
      const { headers, files } = await site;
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (method !== 'GET' && method !== 'HEAD') return void response.writeHead(405).end();
      if (path === DEVELOPMENT) return sendDevelopment(response, development());
      const content = files.get(path);
      if (!content) return void response.writeHead(404).end();
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
      response.setHeader('cache-control', 'no-cache').end(content);
    } catch {
      response.writeHead(500, { 'content-type': 'text/plain' }).end("The console can't be built.\n");
    }
  });
}

function sendDevelopment(response: ServerResponse, files: Readonly<Record<string, string>>): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(files));
}

/** In a clone, builds the page, unless it is newer than all that it is made of. */
async function built(): Promise<void> {
  if (!IS_CLONE) return;
  const made = changed(join(CONSOLE, 'headers.json'));
  const sources = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: CLONE }));
  if (made > Math.max(...sources.map((file) => changed(join(CLONE, file))))) return;
  await promisify(execFile)(process.execPath, [BUILD], { cwd: CLONE });
}

/** In milliseconds since 1970; 0 for a file that does not exist. */
const changed = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function readSite(): Site {
  const headers: Record<string, string> = JSON.parse(readFileSync(join(CONSOLE, 'headers.json'), 'utf8'));
  const names = readdirSync(CONSOLE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(CONSOLE.length + 1));
  const files = new Map(names.map((name) => [name, readFileSync(join(CONSOLE, name))]));
  const page = files.get('index.html')?.toString() ?? '';
  files.set(
    'index.html',
    Buffer.from(page.replace('<head>', `<head>\n<meta name="development" content="${DEVELOPMENT}">`)),
  );
  return { headers, files };
}

/** Root and registers of an emulated NSM, as far as they are there. @param folder with a slash at its end */
export function developmentFiles(folder: URL, names: readonly string[]): Record<string, string> {
  const there = names.filter((name) => existsSync(new URL(name, folder)));
  return Object.fromEntries(there.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
}
