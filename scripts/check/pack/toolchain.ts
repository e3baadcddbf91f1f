/**
 * Packs the published toolchain, with the fakes for development and tests. It requires the program and the
 * server in exactly its own version.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { layOut, listSources } from './compile.ts';
import { layFramework } from './framework.ts';
import { NODE } from './server.ts';
import { formatInstall, makeTarball, type Publication, ROOT, readManifest, type Tarball } from './tarball.ts';

const SRC = join(ROOT, 'src');
const FOLDER = join(ROOT, 'build/package-toolchain');

/** Modules that an application's fakes and tests import. */
const TESTING = ['testing/fakes', 'testing/start_server'];

/** Files that commands read besides their modules, from `src`. */
const FILES = ['prover/keys/*.json', 'devnet/move_framework/**/*.{move,toml}', 'toolchain/dev/play/row.js'];

/**
 * Files of the framework's Move packages, on which the contracts of applications depend; without their tests.
 */
const MOVE = 'move/{enclave,feed}/{Move.toml,sources/*.move}';

/** Package that must not be installed twice: `onTestFinished` works only in the copy that runs the test. */
const RUNNER = 'vitest';

export const toolchainEntries = () => [...listSources('toolchain'), ...TESTING];

/**
 * @param externalModules names of the modules of the program and the server
 * @returns the modules in `externalModules` that the toolchain imports
 */
export function layOutToolchain(externalModules: ReadonlyMap<string, string>): string[] {
  return layOut({ folder: FOLDER, entries: toolchainEntries(), declared: TESTING, externalModules });
}

/** @param tarballs the packages of the framework that an audit knows by their digests */
export function packToolchain(publication: Publication, tarballs: readonly Tarball[]): Tarball {
  const { version } = publication;
  const manifest = readManifest('toolchain');
  const server = readManifest('server');
  for (const file of globSync(FILES, { cwd: SRC })) cpSync(join(SRC, file), join(FOLDER, file));
  for (const file of globSync(MOVE, { cwd: ROOT })) cpSync(join(ROOT, file), join(FOLDER, file));
  layFramework(FOLDER, tarballs);
  execFileSync(process.execPath, ['src/console/build.ts', join(FOLDER, 'console')], { cwd: ROOT });
  const peerDependencies = {
    [readManifest('cli').name]: version,
    [server.name]: version,
    ...server.peerDependencies,
    [RUNNER]: readManifest('testing').dependencies?.[RUNNER] ?? '',
  };
  writeFileSync(join(FOLDER, 'README.md'), readme(manifest.name, peerDependencies, publication));
  return makeTarball({
    folder: FOLDER,
    manifest,
    directory: 'src/toolchain',
    publication,
    node: NODE,
    peerDependencies,
    entries: {
      '.': './toolchain/index',
      ...Object.fromEntries(TESTING.map((module) => [`./${module}`, `./${module}`])),
    },
  });
}

function readme(name: string, peers: Readonly<Record<string, string>>, publication: Publication): string {
  const hasThisVersion = (peer: string) => peers[peer] === publication.version;
  const names = Object.keys(peers).filter(hasThisVersion);
  const otherPeers = Object.entries(peers)
    .filter(([peer]) => !hasThisVersion(peer))
    .map(([peer, exact]) => `${peer}@${exact}`);
  return `# ${name}

The commands of the program \`sui-enclave\` that need a compiler, a bundler or a fake, for Node ${NODE.replace('>=', '')} or newer. They run beside the program and the server of the same version, whose classes they use.

\`\`\`sh
${formatInstall(publication, [name, ...names], otherPeers)}
\`\`\`

\`\`\`sh
node_modules/.bin/sui-enclave --help
\`\`\`

\`dev\`, \`test\`, \`schema\`, \`gen\`, \`dev_sui\` and \`compile\` work on the application of the current folder, which has \`app.yaml\` and \`package.json\`: \`create-sui-enclave\` writes one.

Tests with vitest start the server of an application in their own process, with its log recorded:

\`\`\`js
import { startServer } from '${name}/testing/start_server';

const server = await startServer({ application: new URL('../', import.meta.url) });
const answer = await server.post('/process_data', { payload: { name: 'Ada' } });
\`\`\`
`;
}
