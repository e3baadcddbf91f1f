/**
 * Builds the page of the wallet's README with Vite, from the files as printed there, and opens it in
 * Chromium.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { quantity } from '../../../src/library/wording.ts';
import { listen, MEDIA_TYPES } from './dapp.ts';
import { expectEqual, launchBrowser, ROOT, run, type Steps } from './support.ts';

/** Matches a snippet that is a file. The paragraph above the snippet begins with the file's path. */
export const README_FILE = /^`([\w./]+)` [^\n]*:\n\n```\w+\n(.*?)^```$/gms;

/** Options of Vite's template vanilla-ts, with stricter options added. */
const COMPILER_OPTIONS = {
  target: 'es2023',
  module: 'esnext',
  lib: ['ES2023', 'DOM', 'DOM.Iterable'],
  types: ['vite/client'],
  skipLibCheck: true,
  moduleResolution: 'bundler',
  allowImportingTsExtensions: true,
  verbatimModuleSyntax: true,
  moduleDetection: 'force',
  noEmit: true,
  strict: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  erasableSyntaxOnly: true,
  noFallthroughCasesInSwitch: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
};
const INDEX = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>A page</title></head>
  <body><script type="module" src="/src/main.ts"></script></body>
</html>
`;
/** Maximum size of the files that a page loads before it shows anything, gzipped, in bytes. */
const MAX_FIRST_PAINT = 200_000;

/** @param parent folder of a project that has Vite, TypeScript and the packed library */
export function walletPageSteps(parent: string): Steps {
  const folder = join(parent, 'wallet_page');
  const dist = join(folder, 'dist');

  /** Returns the bytes of a built page: its HTML, and the scripts and styles that the HTML names, gzipped. */
  function measureFirstPaint(page: string): number {
    const html = readFileSync(join(dist, page), 'utf8');
    const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, file = '']) => file);
    expectEqual(files.length > 0, true);
    return files.reduce((sum, file) => sum + gzipSync(readFileSync(join(dist, file))).length, html.length);
  }

  return {
    async "the page of the wallet's README compiles as printed in an empty strict project of Vite"() {
      const readme = readFileSync(join(parent, 'node_modules/sui-enclave/wallet/README.md'), 'utf8');
      const files = [...readme.matchAll(README_FILE)].map(
        ([, path = '', code = '']) => [path, code] as const,
      );
      for (const [path, code] of [...files, ['index.html', INDEX] as const]) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), code);
      }
      const config = { compilerOptions: COMPILER_OPTIONS, include: ['src', 'vite.config.ts'] };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]);
      return files.map(([path]) => path).join(', ');
    },

    async 'Vite builds it, and the files of its first paint are small'() {
      const vite = join(parent, 'node_modules/vite/bin/vite.js');
      await run(process.execPath, [vite, 'build', '--logLevel', 'error'], { cwd: folder });
      const sizes = ['index.html', 'back.html'].map(measureFirstPaint);
      expectEqual(
        sizes.map((size) => size < MAX_FIRST_PAINT),
        [true, true],
      );
      return `${quantity(Math.max(...sizes), 'byte')} of at most ${MAX_FIRST_PAINT}, gzipped`;
    },

    async 'in Chromium its button waits for zkLogin, and the page of the redirect says that no login is in progress'() {
      const server = createServer((request, response) => {
        const { pathname } = new URL(request.url ?? '/', 'http://page.invalid');
        const file = join(dist, pathname === '/' ? 'index.html' : pathname);
        if (!existsSync(file)) return void response.writeHead(404).end();
        response.setHeader('content-type', MEDIA_TYPES[extname(file)] ?? '').end(readFileSync(file));
      });
      const url = await listen(server);
      const browser = await launchBrowser();
      try {
        const context = await browser.newContext();
        const errors: string[] = [];
        context.on('weberror', (error) => errors.push(String(error.error())));
        context.on('request', (request) => {
          if (!request.url().startsWith(url)) errors.push(request.url());
        });
        const page = await context.newPage();
        page.setDefaultTimeout(10_000);
        await page.goto(url);
        const button = page.getByRole('button', { name: 'Log in with Google', disabled: false });
        await button.waitFor().catch(() => errors.push('the button stays disabled'));
        expectEqual(errors, []);
        await page.goto(`${url}/back.html#state=1&id_token=2`);
        await page.getByText(/Return to that page and log in again|no login is in progress/).waitFor();
        expectEqual([page.url(), errors], [`${url}/back.html`, []]);
      } finally {
        await browser.close();
        server.closeAllConnections();
        server.close();
      }
      return 'without a request to another host';
    },
  };
}
