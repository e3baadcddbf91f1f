/**
 * `npm run console`: builds the static files of the console. `node src/console/build.ts [folder] [source]`,
 * by default `out/console` of this folder. Another source is another page of this repository, in the same
 * style. The folder is complete or absent at any time, so that several builds may run at once.
 */
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'vite';
import type { Headers } from './headers.ts';

const LICENSES = 'licenses.md';
/** Vite lists the packages whose code is in the page, and this one has styles alone. */
const KIT = '@digdir/designsystemet-css';
const KIT_LICENSE = new URL('../../LICENSE', import.meta.resolve(`${KIT}/theme.css`));

const FOLDER = fileURLToPath(new URL('../../out/console', import.meta.url));
const SOURCE = fileURLToPath(new URL('.', import.meta.url));

/** The policy is in the page too, for servers that send no headers. */
const policyInPage = (content: string): Plugin => ({
  name: 'policy-in-page',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content },
      injectTo: 'head-prepend',
    },
  ],
});

/** @param source the folder of the page, with its `index.html` and `headers.ts` */
async function buildPage(folder: string, source: string): Promise<void> {
  const { POLICY, HEADERS }: Headers = await import(pathToFileURL(join(source, 'headers.ts')).href);
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}.`);
  // Vite keeps another value, by which React would be its build for development: 60 KB more, gzipped.
  process.env['NODE_ENV'] = 'production';
  try {
    await build({
      root: source,
      configFile: false,
      envDir: false,
      logLevel: 'warn',
      // Relative, so that it can be served below any path.
      base: './',
      plugins: [policyInPage(POLICY)],
      build: {
        outDir: fresh,
        emptyOutDir: true,
        target: 'es2022',
        // Inlined files would be data: URLs, and its polyfill requests modules that nobody asked for.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        // The limit is in KB. Poseidon's constants, which zkLogin needs, are most of a wallet.
        chunkSizeWarningLimit: 2000,
        // The file has the licences of the bundled packages, whose comments the bundle leaves out.
        license: { fileName: LICENSES },
      },
    });
    appendFileSync(
      `${fresh}/${LICENSES}`,
      `\n## ${KIT} (its styles)\n\n${readFileSync(KIT_LICENSE, 'utf8')}`,
    );
    writeFileSync(`${fresh}/headers.json`, `${JSON.stringify(HEADERS, null, 2)}\n`);
    // A temporary folder is private, but a server of another user may serve these files.
    chmodSync(fresh, 0o755);
    replace(folder, fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Replaces a folder. If two builds run at once, the later one stays. */
function replace(folder: string, fresh: string): void {
  const old = `${fresh}.old`;
  for (;;) {
    try {
      renameSync(folder, old);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    try {
      renameSync(fresh, folder);
      return;
    } catch (error) {
      // Another build has put its own files there.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

if (import.meta.main) {
  const [, , folder = FOLDER, source = SOURCE] = process.argv;
  await buildPage(resolve(folder), resolve(source));
}
