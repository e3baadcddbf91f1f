/** The published commands, with the fakes for development and tests. They run beside the server, their exact peer. */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Channel } from '../../../src/toolchain/image/measurements.ts';
import { compile } from './compile.ts';
import { layFramework } from './framework.ts';
import { NODE, PACKED_WITH_SERVER } from './server.ts';
import { makeTarball, ROOT, readManifest, type Tarball } from './tarball.ts';

const SRC = join(ROOT, 'src');
const FOLDER = join(ROOT, 'build/package-cli');

/** Folders of `src`. */
const PACKAGES = [
  ...PACKED_WITH_SERVER,
  ...['apps/salt', 'apps/weather', 'create', 'move_bytecode', 'prover', 'testing', 'commands'],
];

/** Of `src/testing`: what the fakes and the tests of an application import. */
const TESTING = ['fakes', 'start_server'];

/** What commands read beside their modules, from `src`. */
const FILES = [
  'commands/**/*.{sh,service,path,cjs}',
  'prover/keys/*.json',
  'devnet/move_framework/**/*.{move,toml}',
];

/** The Move package of the framework, for the contracts of applications: without its tests. */
const MOVE = 'move/enclave/{Move.toml,sources/*.move}';

/** `onTestFinished` works in the copy that runs the test only. */
const RUNNER = 'vitest';

/**
 * @param elsewhere the names of the server's modules
 * @returns those that the commands import
 */
export function compileCommands(elsewhere: ReadonlyMap<string, string>): string[] {
  const entries = [
    ...globSync('commands/**/*.ts', { cwd: SRC }),
    ...TESTING.map((name) => `testing/${name}.ts`),
  ];
  return compile({ entries, packages: PACKAGES, folder: FOLDER, elsewhere });
}

/** @param known the packages of the framework that an audit knows by their digests */
export function packCommands(version: string, channel: Channel, known: readonly Tarball[]): Tarball {
  const own = readManifest('commands');
  const server = readManifest('server');
  for (const file of globSync(FILES, { cwd: SRC })) cpSync(join(SRC, file), join(FOLDER, file));
  for (const file of globSync(MOVE, { cwd: ROOT })) cpSync(join(ROOT, file), join(FOLDER, file));
  layFramework(FOLDER, known);
  execFileSync(process.execPath, ['src/console/build.ts', join(FOLDER, 'console')], { cwd: ROOT });
  const { [RUNNER]: runner = '', ...dependencies }: Record<string, string> = Object.assign(
    {},
    ...PACKAGES.map((name) => readManifest(name).dependencies),
  );
  const peerDependencies = { ...server.peerDependencies, [server.name]: version, [RUNNER]: runner };
  writeFileSync(join(FOLDER, 'README.md'), readme(own.name, peerDependencies, version));
  return makeTarball({
    ...{ folder: FOLDER, own, version, channel, node: NODE, dependencies, peerDependencies },
    bin: { 'sui-enclave': './commands/bin.cjs' },
    entries: Object.fromEntries(TESTING.map((name) => [`./testing/${name}`, `./testing/${name}`])),
  });
}

function readme(name: string, peers: Readonly<Record<string, string>>, version: string): string {
  const wanted = Object.entries(peers).map(([peer, exact]) =>
    exact === version ? `./${peer}-${version}.tgz` : `${peer}@${exact}`,
  );
  return `# ${name}

The commands of authors, admins and operators of enclaves, for Node ${NODE.replace('>=', '')} or newer. They run beside the server of the same version, whose classes they use.

\`\`\`sh
npm install ./${name}-${version}.tgz ${wanted.join(' ')}
\`\`\`

The program lists them, and each has \`--help\` and \`--json\`:

\`\`\`sh
node_modules/.bin/sui-enclave --help
node_modules/.bin/sui-enclave status --help
\`\`\`

It has the commands that need no clone of the repository. \`dev\`, \`test\`, \`schema\`, \`gen\`, \`dev_sui\`, \`publish\` and \`upgrade\` are about the application of the current folder, which has \`app.yaml\` and \`package.json\`: \`create-sui-enclave\` writes one.

Tests with vitest start the server of an application in their own process, with its log recorded:

\`\`\`js
import { startServer } from '${name}/testing/start_server';

const server = await startServer({ application: new URL('../', import.meta.url) });
const answer = await server.post('/process_data', { payload: { name: 'Ada' } });
\`\`\`
`;
}
