/**
 * Packs the published program `sui-enclave`, with the commands that touch keys or machines. It needs none of
 * the other packages.
 */
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE_FILE, readRelease } from '../../../src/cli/release.ts';
import { layOut, listModules, listSources } from './compile.ts';
import { rewriteLinks } from './repository.ts';
import { NODE } from './server.ts';
import {
  formatInstall,
  internalEntries,
  makeTarball,
  type Publication,
  ROOT,
  readManifest,
  type Tarball,
} from './tarball.ts';

const SRC = join(ROOT, 'src');
const FOLDER = join(ROOT, 'build/package-cli');

/** Patterns of the files that the program reads besides its modules, from `src`. */
const FILES = ['cli/**/*.{service,path,cjs}', 'cli/logs/*.json'];

/**
 * Files that operators need for hosts on AWS and for HTTPS, by their paths in the repository: templates,
 * rights and the recipe with HAProxy. Hosts of the template get the recipe with the program.
 */
const DEPLOY_FILES = [
  'deploy/aws/stack.yaml',
  'deploy/aws/alb.yaml',
  'deploy/aws/operator-policy.json',
  ...globSync('deploy/https/*', { cwd: ROOT, exclude: ['**/README.md'] }).sort(),
];
const DEPLOY_PAGES = ['deploy/aws/README.md', 'deploy/https/README.md'];

export const cliEntries = () => listSources('cli');

/** @returns the names of the program's modules in the package, by their paths from `src` without extension */
export function layOutCli(): ReadonlyMap<string, string> {
  layOut({ folder: FOLDER, entries: cliEntries() });
  const { name } = readManifest('cli');
  return new Map(listModules(FOLDER).map((module) => [module, `${name}/internal/${module}`]));
}

/** @param internal modules to export under `./internal`, for the toolchain of exactly the same version */
export function packCli(publication: Publication, internal: readonly string[]): Tarball {
  const { version } = publication;
  const manifest = readManifest('cli');
  for (const file of globSync(FILES, { cwd: SRC })) cpSync(join(SRC, file), join(FOLDER, file));
  for (const file of DEPLOY_FILES) cpSync(join(ROOT, file), join(FOLDER, file));
  for (const path of DEPLOY_PAGES) {
    const markdown = readFileSync(join(ROOT, path), 'utf8');
    const page = { path, markdown, packed: [...DEPLOY_FILES, ...DEPLOY_PAGES] };
    writeFileSync(join(FOLDER, path), rewriteLinks(page, publication.repository));
  }
  writeFileSync(join(FOLDER, RELEASE_FILE), `${JSON.stringify({ ...readRelease(), version }, null, 1)}\n`);
  writeFileSync(join(FOLDER, 'README.md'), readme(manifest.name, publication));
  return makeTarball({
    folder: FOLDER,
    manifest,
    directory: 'src/cli',
    publication,
    node: NODE,
    peerDependencies: {},
    bin: { 'sui-enclave': './cli/bin.cjs' },
    entries: internalEntries(internal),
  });
}

function readme(name: string, publication: Publication): string {
  return `# ${name}

The program \`sui-enclave\`: the commands of admins, provisioners and operators of enclaves, for Node ${NODE.replace('>=', '')} or newer.

\`\`\`sh
${formatInstall(publication, [name])}
\`\`\`

The program lists them, and each has \`--help\` and \`--json\`:

\`\`\`sh
node_modules/.bin/sui-enclave --help
node_modules/.bin/sui-enclave status --help
\`\`\`

It has the commands that need no clone of the repository. The commands that need a compiler, a bundler or a fake, such as \`dev\`, \`test\`, \`build\` and \`audit\`, are in \`sui-enclave-toolchain\` of the same version. The program looks for this package beside its own files, not in the current folder. A machine with keys does not need the package: \`sui-enclave compile\` writes a compiled package on another machine, for \`publish\` and \`upgrade\` on this one.

[deploy/aws](deploy/aws/README.md) has the templates of hosts on AWS, and [deploy/https](deploy/https/README.md) the files that put HTTPS in front of enclaves. The first page begins with an empty account and ends with an HTTPS address.

The entries under \`internal\` are for the toolchain of the same version, and change without notice.
`;
}
