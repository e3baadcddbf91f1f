/**
 * `npm run console`: builds the static files of the console. `node src/console/build.ts [folder] [source]`
 * writes to `folder`, by default `out/console` of the current folder. Another source builds another page of
 * this repository. The folder is complete or absent at any time, so that several builds
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

/** Returns a plugin that puts the policy into the page too, for servers that send no headers. */
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

/** Builds a page. @param source folder of the page, with its `index.html` and `headers.ts` */
async function buildPage(folder: string, source: string): Promise<void> {
  const { POLICY, HEADERS }: Headers = await import(pathToFileURL(join(source, 'headers.ts')).href);
  mkdirSync(dirname(folder), { recursive: true });
  const buildFolder = mkdtempSync(`${folder}.`);
  // Vite would keep another value of NODE_ENV. The page would then get React's development build, which is
  // 60 KB larger when gzipped.
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
        outDir: buildFolder,
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
      `${buildFolder}/${LICENSES}`,
      `\n## ${KIT} (its styles)\n\n${readFileSync(KIT_LICENSE, 'utf8')}`,
    );
    writeFileSync(`${buildFolder}/headers.json`, `${JSON.stringify(HEADERS, null, 2)}\n`);
    // A temporary folder is private, but a server of another user may serve these files.
    chmodSync(buildFolder, 0o755);
    replaceFolder(folder, buildFolder);
  } finally {
    rmSync(buildFolder, { recursive: true, force: true });
  }
}

/** Replaces a folder. If two builds run at the same time, the files of the later build stay. */
function replaceFolder(folder: string, buildFolder: string): void {
  const formerFolder = `${buildFolder}.old`;
  for (;;) {
    try {
      renameSync(folder, formerFolder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    try {
      renameSync(buildFolder, folder);
      return;
    } catch (error) {
      // Another build has written its own files to the folder.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    } finally {
      rmSync(formerFolder, { recursive: true, force: true });
    }
  }
}

if (import.meta.main) {
  const [, , folder = FOLDER, source = SOURCE] = process.argv;
  await buildPage(resolve(folder), resolve(source));
}
