/**
 * Runs inside the image's build, as `bundle.ts APP_DIR STAGE`. Bundles the server and its application without
 * node_modules, into STAGE/server.js and the files of `LAZY_PACKAGES`. Lists the packages whose code these
 * contain in STAGE/bundled.json.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { path } from 'sui-enclave-cli/values';
import { LAZY_PACKAGES, type LazyPackage, loadLazily } from './lazy_packages.ts';
import { packageFolders } from './licenses.ts';
import { placeModules } from './module_places.ts';
import { readImageVersion } from './version.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * Makes relative paths of an application begin in its folder. This module is loaded first, since others may
 * use a relative path as soon as they are loaded.
 */
const FOLDER = 'process.chdir(import.meta.dirname);';

/**
 * Entry module of the image. The application is part of the bundle; app.json and schema.json are files beside
 * it.
 */
const formatEntry = (version: string, folder: string, application: string) => `
import ${JSON.stringify(folder)};
import { readFileSync } from 'node:fs';
import { parseManifestJson } from 'sui-enclave-server/manifest';
import { readSchemaFile } from 'sui-enclave-server/schema_file';
import { start } from 'sui-enclave-server/start';
import module from ${JSON.stringify(application)};

const manifest = parseManifestJson(readFileSync('/app/app.json', 'utf8'));
void start({ version: ${JSON.stringify(version)}, nsmAddon: '/app/nsm.node', load: async () => ({ manifest, module, schema: readSchemaFile('/app/schema.json') }) });
`;

/** A bundled file of the server. */
interface BundledFile {
  readonly code: string;
  /** The paths of the modules that the file contains. */
  readonly modules: readonly string[];
}

/**
 * Bundles the server with an application.
 *
 * @param appDir the application's folder, from the root of the repository
 * @param stage folder to which server.js and the files that it loads are written
 * @returns the paths of the modules in these files
 */
export async function bundle(
  root: string,
  version: string,
  appDir: string,
  stage: string,
): Promise<string[]> {
  // This file does not exist; its imports are resolved as if it did.
  const entry = join(root, 'entry.js');
  const folder = join(root, 'folder.js');
  const sources = new Map([
    [folder, FOLDER],
    [entry, formatEntry(version, folder, join(root, appDir, 'app.ts'))],
  ]);
  const virtual: Plugin = {
    name: 'entry',
    resolveId: (source) => (sources.has(source) ? source : null),
    load: (id) => sources.get(id) ?? null,
  };
  const plugins = [virtual, placeModules(join(root, appDir))];
  const bundleServer = (lazy: readonly LazyPackage[]) =>
    bundleFile(root, entry, [...plugins, loadLazily(root, lazy)]);

  const packages = new Map<LazyPackage, BundledFile>();
  for (const lazyPackage of LAZY_PACKAGES)
    packages.set(lazyPackage, await bundleFile(root, join(root, lazyPackage.module), []));
  let server = await bundleServer(LAZY_PACKAGES);
  // Each module is bundled once: if the application uses a module of a package, the package stays in
  // server.js.
  for (let shared = findShared(server, packages); shared.length > 0; shared = findShared(server, packages)) {
    for (const lazyPackage of shared) packages.delete(lazyPackage);
    server = await bundleServer([...packages.keys()]);
  }
  mkdirSync(stage, { recursive: true });
  writeFileSync(join(stage, 'server.js'), server.code);
  for (const [{ file }, { code }] of packages) writeFileSync(join(stage, file), code);
  return [server, ...packages.values()].flatMap(({ modules }) => modules);
}

/**
 * Returns the packages that have a module in server.js, besides the module that loads the package.
 */
function findShared(server: BundledFile, packages: ReadonlyMap<LazyPackage, BundledFile>): LazyPackage[] {
  // The bundler's own modules, which are in each file, do not count.
  const inServer = new Set(server.modules.filter(isAbsolute));
  return [...packages].flatMap(([lazyPackage, { modules }]) =>
    modules.some((path) => inServer.has(path) && !path.endsWith(`/${lazyPackage.module}`))
      ? [lazyPackage]
      : [],
  );
}

/** Bundles a module and everything that it imports into one file. */
async function bundleFile(root: string, entry: string, plugins: Plugin[]): Promise<BundledFile> {
  const bundler = await rolldown({
    cwd: root,
    input: entry,
    // The bundle contains neither paths nor comments. So the registers stay the same if a file moves or a
    // comment changes.
    experimental: { attachDebugInfo: 'none' },
    platform: 'node',
    // The build must also ignore the settings of a compiler in a folder above.
    tsconfig: false,
    // The bundler would leave a dependency that it can't find to be loaded at run time, when there is no
    // node_modules in the image.
    onLog(level, log, handler) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new ImageError('ARCHIVE_INVALID', log.message);
      handler(level, log);
    },
    plugins,
  });
  const {
    output: [{ code, moduleIds }],
  } = await bundler.generate({
    // The format is not ESM. In ESM, an import of node:http would read each of its exports, and one of them
    // loads all of fetch, which takes a seventh of the start.
    format: 'cjs',
    strict: true,
    codeSplitting: false,
    comments: false,
  });
  return { code, modules: moduleIds };
}

/**
 * Returns the packages in a bundle, as its build lists them.
 *
 * @param packages that the image is built from, by folder
 * @returns the folders of the packages in the build
 * @throws ImageError: ARCHIVE_INVALID if the list has a package that is not in `packages`
 */
export function readBundled(file: string, packages: ReadonlyMap<string, unknown>): string[] {
  const folders: string[] = JSON.parse(readFileSync(file, 'utf8'));
  const unknownFolder = folders.find((folder) => !packages.has(folder));
  if (unknownFolder === undefined) return folders;
  throw new ImageError(
    'ARCHIVE_INVALID',
    `the bundle contains code of ${unknownFolder}, which is not among the packages that the image is built from`,
  );
}

export const main = command({
  name: 'bundle',
  program: 'node src/toolchain/image/bundle.ts',
  purpose:
    "Inside the image's build: bundles the server and its application as server.js in the folder <stage>. Beside\nit, writes the packages that it loads later, and the list of all packages in these files.",
  arguments: { app_dir: { schema: path }, stage: { schema: path } },
  options: {},
  async run({ args: { app_dir: appDir, stage } }) {
    const modules = await bundle(ROOT, readImageVersion(ROOT, join(ROOT, appDir)), appDir, stage);
    writeFileSync(join(stage, 'bundled.json'), JSON.stringify(packageFolders(ROOT, modules)));
    return { json: { file: join(stage, 'server.js') } };
  },
});

if (import.meta.main) await runAsProcess(main);
