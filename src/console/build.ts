/**
 * `make console`: builds the static files of the console. `node src/console/build.ts [folder]`, by default `out/console`.
 * The folder is complete or absent at any time, so that several builds may run at once.
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
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'vite';
import { CONTENT_SECURITY_POLICY, HEADERS } from './headers.ts';

const LICENSES = 'licenses.md';
/** Vite lists the packages whose code is in the page, and this one has styles alone. */
const KIT = '@digdir/designsystemet-css';
const KIT_LICENSE = new URL('../../LICENSE', import.meta.resolve(`${KIT}/theme.css`));

const FOLDER = fileURLToPath(new URL('../../out/console', import.meta.url));

/** The policy is in the page too, for servers that send no headers. */
const policyInPage: Plugin = {
  name: 'policy-in-page',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content: CONTENT_SECURITY_POLICY },
      injectTo: 'head-prepend',
    },
  ],
};

export async function buildConsole(folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}.`);
  // Vite keeps another value, by which React would be its build for development: 60 KB more, gzipped.
  process.env['NODE_ENV'] = 'production';
  try {
    await build({
      root: fileURLToPath(new URL('.', import.meta.url)),
      configFile: false,
      envDir: false,
      logLevel: 'warn',
      // Relative, so that it can be served below any path.
      base: './',
      plugins: [policyInPage],
      build: {
        outDir: fresh,
        emptyOutDir: true,
        target: 'es2022',
        // Inlined files would be data: URLs, and its polyfill requests modules that nobody asked for.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        // Of the packages in it, whose comments it leaves out.
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

/** Of two builds at once, the later one stays. */
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
      // Another build has put its own there.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

if (import.meta.main) await buildConsole(resolve(process.argv[2] ?? FOLDER));
