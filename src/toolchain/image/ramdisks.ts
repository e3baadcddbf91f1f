/**
 * Runs inside the image's build, as `ramdisks.ts APP_DIR STAGE`. Writes the boot system (PCR1) to
 * STAGE/boot.cpio, and the application (PCR2) to STAGE/app.cpio.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { writeCpio } from 'sui-enclave-cli/image/cpio';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { makeEnvironment, makeHosts, makeSettings } from 'sui-enclave-cli/image/settings';
import { path } from 'sui-enclave-cli/values';
import { formatManifest, parseManifest, parseManifestJson } from 'sui-enclave-server/manifest';
import { readSchemaFile } from 'sui-enclave-server/schema_file';
import { readFiles } from './files.ts';
import { SERVER_FILES } from './lazy_packages.ts';
import { tryStart } from './try_start.ts';

const LOADER = '/lib64/ld-linux-x86-64.so.2';
const LIBRARY_FOLDER = '/usr/lib/x86_64-linux-gnu';

export const main = command({
  name: 'ramdisks',
  program: 'node src/toolchain/image/ramdisks.ts',
  purpose:
    "Runs inside the image's build: packs the boot system into boot.cpio and the application into app.cpio, in the folder\n<stage>.",
  arguments: { app_dir: { schema: path }, stage: { schema: path } },
  options: {
    'no-trial': { help: 'do not start the server of the image, which runs the code of the application' },
  },
  async run({ args: { app_dir: appDir, stage }, options }) {
    await makeRamdisks(appDir, stage, !options['no-trial']);
    return { json: { files: ['boot.cpio', 'app.cpio'].map((name) => join(stage, name)) } };
  },
});

async function makeRamdisks(appDir: string, stage: string, hasTrial: boolean): Promise<void> {
  const file = (path: string) => ({ data: readFileSync(path) });
  const program = (path: string) => ({ data: readFileSync(path), executable: true });

  const libraries = [...findLibraries(['init', 'node', 'nsm.node'].map((name) => join(stage, name)))].sort();
  const boot = writeCpio(
    new Map([
      ['init', program(join(stage, 'init'))],
      ['bin/node', program(join(stage, 'node'))],
      [LOADER.slice(1), program(LOADER)],
      ...libraries.map(
        (name) => [`${LIBRARY_FOLDER}/${name}`.slice(1), file(`${LIBRARY_FOLDER}/${name}`)] as const,
      ),
      // Host names are resolved by /etc/hosts alone.
      ['etc/nsswitch.conf', { data: Buffer.from('hosts: files\n') }],
    ]),
    ['app', 'dev', 'proc', 'run'],
  );
  writeFileSync(join(stage, 'boot.cpio'), boot);

  const json = formatManifest(parseManifest(readFileSync(join(appDir, 'app.yaml'), 'utf8')));
  // The manifest is read in the same way as by the image's server.
  const manifest = parseManifestJson(json);
  // An application may have its own certificate authority, for upstreams whose certificates no public
  // authority signed.
  const ca = join(appDir, 'ca.pem');
  const serverEnv = ['enclave/server.env', join(appDir, 'server.env')]
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'));
  const environment = makeEnvironment(
    manifest.name ?? basename(appDir),
    manifest,
    serverEnv.join('\n'),
    existsSync(ca),
  );
  const application = new Map([
    ['app/app.json', { data: Buffer.from(json) }],
    ['app/enclave.conf', { data: Buffer.from(makeSettings(manifest, environment)) }],
    ['app/nsm.node', file(join(stage, 'nsm.node'))],
    ...SERVER_FILES.filter((name) => existsSync(join(stage, name))).map(
      (name) => [`app/${name}`, file(join(stage, name))] as const,
    ),
    ['etc/hosts', { data: Buffer.from(makeHosts(manifest)) }],
    ...(existsSync(ca) ? [['app/ca.pem', file(ca)] as const] : []),
    ...schemaEntry(appDir),
    ...[...readFiles(appDir, manifest)].map(([path, data]) => [`app/${path}`, { data }] as const),
  ]);
  if (hasTrial) await tryStart(join(stage, 'node'), application, environment);
  writeFileSync(join(stage, 'app.cpio'), writeCpio(application));
}

/**
 * Returns schema.json if it exists beside app.ts. The build does not make it, since that would run the
 * application's code.
 *
 * @throws ConfigError
 */
export function schemaEntry(appDir: string): [path: string, file: { readonly data: Buffer }][] {
  const schema = readSchemaFile(join(appDir, 'schema.json'));
  return schema === undefined ? [] : [['app/schema.json', { data: Buffer.from(schema) }]];
}

/** Returns the shared libraries that the programs need, directly or indirectly, except the loader. */
function findLibraries(programs: readonly string[]): Set<string> {
  const libraries = new Set<string>();
  const waiting = [...programs];
  for (let path = waiting.pop(); path; path = waiting.pop()) {
    const dynamic = execFileSync('readelf', ['-d', path], { encoding: 'utf8' });
    for (const [, name = ''] of dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)) {
      if (LOADER.endsWith(name) || libraries.has(name)) continue;
      const library = join(LIBRARY_FOLDER, name);
      if (!existsSync(library))
        throw new ImageError('ARCHIVE_INVALID', `${path} needs ${name}, which is not in ${LIBRARY_FOLDER}`);
      libraries.add(name);
      waiting.push(library);
    }
  }
  return libraries;
}

if (import.meta.main) await runAsProcess(main);
