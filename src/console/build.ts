/**
 * `npm run console`: builds the static files of the console. `node src/console/build.ts [folder] [source]`
 * writes to `folder`, by default `out/console` of the current folder. Another source builds another page of
 * this repository, in the same style. The folder is complete or absent at any time, so that several builds
 * may run at the same time.
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
/**
 * Package that has only styles. Vite lists only packages whose code is in the page, so its licence is added.
 */
const KIT = '@digdir/designsystemet-css';
const KIT_LICENSE = new URL('../../LICENSE', import.meta.resolve(`${KIT}/theme.css`));

const FOLDER = fileURLToPath(new URL('../../out/console', import.meta.url));
const SOURCE = fileURLToPath(new URL('.', import.meta.url));

/** Puts the policy into the page too, for servers that send no headers. */
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

/** @param source folder of the page, with its `index.html` and `headers.ts` */
async function buildPage(folder: string, source: string): Promise<void> {
  const { POLICY, HEADERS }: Headers = await import(pathToFileURL(join(source, 'headers.ts')).href);
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}.`);
  // Vite keeps another value, with which the page would get React's development build, 60 KB more when
  // gzipped.
  process.env['NODE_ENV'] = 'production';
  try {
    await build({
      root: source,
      configFile: false,
      envDir: false,
      logLevel: 'warn',
      // The base is relative, so that the page can be served below any path.
      base: './',
      plugins: [policyInPage(POLICY)],
      build: {
        outDir: fresh,
        emptyOutDir: true,
        target: 'es2022',
        // Inlined files would be data URLs. Vite's polyfill would request modules that the page may not need.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        // The limit is in KB. Poseidon's constants, which zkLogin needs, are the largest part of a wallet.
        chunkSizeWarningLimit: 2000,
        // This file gets the licences of the bundled packages, since the bundle has no comments.
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

/** Replaces a folder. If two builds run at the same time, the later result stays. */
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
      // Another build has written its own files to the folder.
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
