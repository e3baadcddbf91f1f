/**
 * Inside the image's build, `bundle.ts APP_DIR STAGE`: the server and its application as one file, STAGE/server.js,
 * without node_modules.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { command, runAsProcess } from '../command.ts';
import { path } from '../values.ts';
import { ImageError } from './errors.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The image's own entry: the application is part of the bundle, app.yaml and schema.json are files beside it. */
const entryOf = (version: string, application: string) => `
import { readFileSync } from 'node:fs';
import { parseManifest } from 'sui-enclave-server/manifest';
import { readSchemaFile } from 'sui-enclave-server/schema_file';
import { start } from 'sui-enclave-server/start';
import module from ${JSON.stringify(application)};

const manifest = parseManifest(readFileSync('/app/app.yaml', 'utf8'));
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
  const bundler = await rolldown({
    cwd: root,
    input: { server: entry },
    // Neither paths nor comments: a file may move, or a comment change, and the registers stay.
    experimental: { attachDebugInfo: 'none' },
    platform: 'node',
    // The bundler leaves a dependency that it can't find to be loaded at run time, but the image has no node_modules.
    onLog(level, log, handler) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new ImageError('ARCHIVE_INVALID', log.message);
      handler(level, log);
    },
    plugins: [
      {
        name: 'entry',
        resolveId: (source) => (source === entry ? entry : null),
        load: (id) => (id === entry ? entryOf(version, join(root, appDir, 'app.ts')) : null),
      },
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

export const main = command({
  name: 'bundle',
  program: 'node src/commands/image/bundle.ts',
  purpose:
    "Inside the image's build: bundles the server and its application as one file, server.js in the folder <stage>.",
  arguments: { app_dir: { schema: path }, stage: { schema: path } },
  options: {},
  async run({ args: { app_dir: appDir, stage } }) {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'src/server/package.json'), 'utf8'));
    await bundle(ROOT, version, appDir, stage);
    return { json: { file: join(stage, 'server.js') } };
  },
});

if (import.meta.main) await runAsProcess(main);
