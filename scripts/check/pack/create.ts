/**
 * Packs the published `create-sui-enclave`: its templates, and the manifest and lockfile for the repositories
 * that it writes.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { layOut } from './compile.ts';
import { NODE } from './server.ts';
import { makeTarball, type Publication, ROOT, readManifest, type Tarball } from './tarball.ts';

const SRC = join(ROOT, 'src/create');
const FOLDER = join(ROOT, 'build/package-create');

export const CREATE_ENTRY = 'create/main';

/** npm packages that an application imports, and packages for its tests and types. */
const DEPENDENCIES = ['@mysten/bcs', 'valibot'];
const DEV_DEPENDENCIES = ['@mysten/sui', '@types/express', '@types/node', 'typescript', 'vitest'];

/**
 * Override for an editor plug-in that `@mysten/sui` installs, and whose peer is an older TypeScript.
 * Nothing here loads the plug-in.
 */
const OVERRIDES = { '@0no-co/graphqlsp': { typescript: '$typescript' } };

interface Lock {
  readonly packages: Readonly<Record<string, { resolved?: string; version?: string; link?: boolean }>>;
}

function readLock(folder: string, file: string): Lock {
  return JSON.parse(readFileSync(join(folder, file), 'utf8'));
}

/** @param tarballs the packages that a new repository depends on */
export function packCreate(publication: Publication, tarballs: readonly Tarball[]): Tarball {
  const { version } = publication;
  const packageManifest = readManifest('create');
  layOut({ folder: FOLDER, entries: [CREATE_ENTRY] });
  for (const name of ['templates', 'bin.cjs']) {
    cpSync(join(SRC, name), join(FOLDER, 'create', name), { recursive: true });
  }
  const manifest = createRepositoryManifest(version);
  const pinned = {
    version,
    manifest,
    lock: createLock(manifest, tarballs),
    tarballs: listTarballs(tarballs),
  };
  writeFileSync(join(FOLDER, 'create/pinned.json'), `${JSON.stringify(pinned, null, 1)}\n`);
  writeFileSync(join(FOLDER, 'README.md'), readme(packageManifest.name, publication));
  return makeTarball({
    folder: FOLDER,
    manifest: packageManifest,
    directory: 'src/create',
    publication,
    node: NODE,
    peerDependencies: {},
    bin: { [packageManifest.name]: './create/bin.cjs' },
    entries: {},
  });
}

function listTarballs(tarballs: readonly Tarball[]): Readonly<Record<string, string>> {
  return Object.fromEntries(tarballs.map(({ name, file }) => [name, basename(file)]));
}

interface RepositoryManifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function createRepositoryManifest(version: string): RepositoryManifest {
  const versions = (names: readonly string[]) =>
    names.map((name): [string, string] => [name, pinnedVersion(name)]);
  const sorted = (entries: [string, string][]) =>
    Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  const manifest = {
    name: 'price',
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: { node: NODE },
    scripts: { dev: 'sui-enclave dev', test: 'sui-enclave test' },
    dependencies: sorted([...versions(DEPENDENCIES), ['sui-enclave-server', version]]),
    devDependencies: sorted([
      ...versions(DEV_DEPENDENCIES),
      ['sui-enclave', version],
      ['sui-enclave-cli', version],
      ['sui-enclave-toolchain', version],
    ]),
    overrides: OVERRIDES,
  };
  return manifest;
}

/** Returns the version of a package in this repository. */
function pinnedVersion(name: string): string {
  return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/**
 * Creates the lockfile with npm here, so that the author of a repository needs neither npm nor a network for
 * it. It starts from this repository's lockfile, so that shared packages have the same versions. Its digests
 * of the tarballs are those that the registry has once they are published.
 */
function createLock(manifest: RepositoryManifest, tarballs: readonly Tarball[]): object {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-lock-'));
  try {
    const files = new Map(tarballs.map(({ name, file }) => [name, `file:${join(ROOT, file)}`]));
    const fromFiles = (versions: Readonly<Record<string, string>>) =>
      Object.fromEntries(
        Object.entries(versions).map(([name, version]) => [name, files.get(name) ?? version]),
      );
    const local = {
      ...manifest,
      dependencies: fromFiles(manifest.dependencies),
      devDependencies: fromFiles(manifest.devDependencies),
    };
    const { packages } = readLock(ROOT, 'package-lock.json');
    const installedPackages = Object.entries(packages).filter(
      ([path, { link }]) => path.startsWith('node_modules/') && !link,
    );
    const write = (name: string, content: object) =>
      writeFileSync(join(folder, name), JSON.stringify(content));
    write('package.json', local);
    write('package-lock.json', {
      name: manifest.name,
      version: '0.1.0',
      lockfileVersion: 3,
      requires: true,
      packages: { '': local, ...Object.fromEntries(installedPackages) },
    });
    cpSync(join(SRC, 'templates/repository/_npmrc'), join(folder, '.npmrc'));
    const options = ['--package-lock-only', '--ignore-scripts', '--prefer-offline', '--loglevel=error'];
    execFileSync('npm', ['install', ...options], { cwd: folder, stdio: ['ignore', 'ignore', 2] });
    const lock = readLock(folder, 'package-lock.json');
    for (const [path, locked] of Object.entries(lock.packages)) {
      if (path === '') Object.assign(locked, manifest);
      else if (locked.resolved?.startsWith('file:')) delete locked.resolved;
    }
    return lock;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readme(name: string, { version, channel }: Publication): string {
  const commands =
    channel === 'stable'
      ? `npm create ${name.replace('create-', '')}@${version} my-oracle
cd my-oracle && npm ci`
      : `npm exec --yes --package=./${name}-${version}.tgz -- ${name} my-oracle --from .   # a folder with the tarballs
cd my-oracle && npm cache add ./packages/*.tgz && npm ci`;
  return `# ${name}

Writes an application for an AWS Nitro Enclave, whose answers a contract on Sui accepts, as a repository of its own. It needs Node ${NODE.replace('>=', '')} or newer, asks no questions and needs no network:

\`\`\`sh
${commands}
npx --offline sui-enclave dev
\`\`\`

\`--template\` chooses another application than the default, prices of a service: \`feed\`, a price that is kept on chain, \`weather\`, \`dapp\`, \`llm\`, or \`empty\`, which signs nothing yet. \`npm create\` passes on the options after \`--\`.
`;
}
