/**
 * Inside the image's build, `bundle.ts APP_DIR STAGE`: the server and its application as one file, STAGE/server.js,
 * without node_modules, and the packages that it contains code of, STAGE/bundled.json.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { path } from 'sui-enclave-cli/values';
import { packageFolders } from './licenses.ts';
import { placeModules } from './module_places.ts';
import { versionOf } from './version.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Relative paths of an application begin in its folder. Loaded first: its modules may use such a path at once. */
const FOLDER = 'process.chdir(import.meta.dirname);';

/** The image's own entry: the application is part of the bundle, app.json and schema.json are files beside it. */
const entryOf = (version: string, folder: string, application: string) => `
import ${JSON.stringify(folder)};
import { readFileSync } from 'node:fs';
import { parseManifestJson } from 'sui-enclave-server/manifest';
import { readSchemaFile } from 'sui-enclave-server/schema_file';
import { start } from 'sui-enclave-server/start';
import module from ${JSON.stringify(application)};

const manifest = parseManifestJson(readFileSync('/app/app.json', 'utf8'));
void start({ version: ${JSON.stringify(version)}, nsmAddon: '/app/nsm.node', load: async () => ({ manifest, module, schema: readSchemaFile('/app/schema.json') }) });
`;

/**
 * @param appDir the application's folder, from the root of the repository
 * @param stage folder that gets server.js
 * @returns the paths of the modules in it
 */
export async function bundle(
  root: string,
  version: string,
  appDir: string,
  stage: string,
): Promise<string[]> {
  // No such file: its imports are resolved as if it were there.
  const entry = join(root, 'entry.js');
  const folder = join(root, 'folder.js');
  const sources = new Map([
    [folder, FOLDER],
    [entry, entryOf(version, folder, join(root, appDir, 'app.ts'))],
  ]);
  const bundler = await rolldown({
    cwd: root,
    input: { server: entry },
    // Neither paths nor comments: a file may move, or a comment change, and the registers stay.
    experimental: { attachDebugInfo: 'none' },
    platform: 'node',
    // Nor the settings of a compiler that happen to lie in a folder above.
    tsconfig: false,
    // The bundler leaves a dependency that it can't find to be loaded at run time, but the image has no node_modules.
    onLog(level, log, handler) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new ImageError('ARCHIVE_INVALID', log.message);
      handler(level, log);
    },
    plugins: [
      {
        name: 'entry',
        resolveId: (source) => (sources.has(source) ? source : null),
        load: (id) => sources.get(id) ?? null,
      },
      placeModules(join(root, appDir)),
    ],
  });
  const {
    output: [chunk],
  } = await bundler.write({
    dir: stage,
    // Not ESM: an import of node:http reads each of its exports, and one of them loads all of fetch, a seventh of the
    // start.
    format: 'cjs',
    strict: true,
    entryFileNames: 'server.js',
    codeSplitting: false,
    comments: false,
  });
  return chunk.moduleIds;
}

/**
 * The packages in a bundle, as its build lists them.
 *
 * @param packages what the image is built from, by folder
 * @returns their folders in the build
 * @throws ImageError: ARCHIVE_INVALID if the list has another one
 */
export function readBundled(file: string, packages: ReadonlyMap<string, unknown>): string[] {
  const folders: string[] = JSON.parse(readFileSync(file, 'utf8'));
  const unknown = folders.find((folder) => !packages.has(folder));
  if (unknown === undefined) return folders;
  throw new ImageError(
    'ARCHIVE_INVALID',
    `the bundle contains code of ${unknown}, which is not among the packages that the image is built from`,
  );
}

export const main = command({
  name: 'bundle',
  program: 'node src/toolchain/image/bundle.ts',
  purpose:
    "Inside the image's build: bundles the server and its application as one file, server.js in the folder <stage>, beside the\nlist of the packages in it.",
  arguments: { app_dir: { schema: path }, stage: { schema: path } },
  options: {},
  async run({ args: { app_dir: appDir, stage } }) {
    const modules = await bundle(ROOT, versionOf(ROOT, join(ROOT, appDir)), appDir, stage);
    writeFileSync(join(stage, 'bundled.json'), JSON.stringify(packageFolders(ROOT, modules)));
    return { json: { file: join(stage, 'server.js') } };
  },
});

if (import.meta.main) await runAsProcess(main);
