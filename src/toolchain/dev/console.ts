/** Serves the console's static files on loopback, for `dev` and `dev_sui`. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { integer } from 'sui-enclave-service/env';
import { serveLoopback } from 'sui-enclave-testing/loopback';
import { CONSOLE } from '../places.ts';
import { insertIntoHead, loadSite, readPath, sendFile } from './site.ts';

/** Path of the file with development data for a page: see `src/console/lib/development.ts`. */
const DEVELOPMENT = 'development.json';

/** Development data, which `src/console/lib/development.ts` reads. */
export interface Development {
  readonly command: string;
  /** URLs of the enclaves that the command has started. */
  readonly started: readonly string[];
  /** Texts of the root and the registers, by file name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ConsoleOptions {
  readonly port: number;
  /** Fragment of the first page's URL, such as `#/enclave?url=…`. */
  readonly link: string;
  /** Returns the data that the page fetches from its own origin. Called at each request. */
  readonly development: () => Development;
  readonly log: (line: string) => void;
}

/**
 * Reads the port. The default is 0: the system chooses, so that two commands don't use the same port.
 *
 * @throws ConfigError
 */
export function consolePort(env: Readonly<Record<string, string | undefined>>): number {
  return integer(env, 'CONSOLE_PORT', { from: 0, to: 65_535, default: 0 });
}

/**
 * Serves the console and logs its address. A failure is logged too, and has no other effect.
 *
 * @returns `settled`, which resolves when the address or the failure has been logged
 */
export function startConsole(options: ConsoleOptions): { readonly settled: Promise<void>; close(): void } {
  const { port, link, log } = options;
  const server = createConsoleServer(options);
  const settled = serveLoopback(server, port).then(
    (origin) => log(`Console:  ${origin}/${link}`),
    ({ code }: NodeJS.ErrnoException) => log(`The console can't listen on CONSOLE_PORT: ${code}.`),
  );
  // The console alone must not keep the process alive after the server that the command runs has ended.
  server.unref();
  return {
    settled,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function createConsoleServer({ development, log }: ConsoleOptions): Server {
  const site = loadSite(CONSOLE, 'src/console');
  site.catch((error: Error) => log(`The console can't be built: ${error.message}`));
  return createServer(async ({ method, url }, response) => {
    const path = readPath(url);
    try {
      const { headers, files } = await site;
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (method !== 'GET' && method !== 'HEAD') return void response.writeHead(405).end();
      if (path === DEVELOPMENT) return sendDevelopment(response, development());
      const content = files.get(path);
      if (!content) return void response.writeHead(404).end();
      const meta = `<meta name="development" content="${DEVELOPMENT}">`;
      sendFile(response, path, path === 'index.html' ? insertIntoHead(await site, meta) : content);
    } catch {
      response.writeHead(500, { 'content-type': 'text/plain' }).end("The console can't be built.\n");
    }
  });
}

function sendDevelopment(response: ServerResponse, { command, started, files }: Development): void {
  const urls = started.map((url) => new URL(url).href);
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ command, started: urls, files }));
}

/**
 * Reads the root and the registers of an emulated NSM, if the files exist. @param folder with a slash at its
 * end
 */
export function developmentFiles(folder: URL, names: readonly string[]): Record<string, string> {
  const existing = names.filter((name) => existsSync(new URL(name, folder)));
  return Object.fromEntries(existing.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
}
