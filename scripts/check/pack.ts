/**
 * `make package`: packs the library, the server, the program `sui-enclave`, its toolchain and
 * `create-sui-enclave` as tarballs in `out`, for `npm install`. The package.json files in `src` export
 * TypeScript, which Node doesn't run below node_modules. Each tarball therefore has compiled modules, and a
 * manifest of its own. CHANNEL is `stable`, or `experimental` by default.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command, type Result, runAsProcess } from '../../src/cli/command.ts';
import { ConfigError } from '../../src/library/errors.ts';
import { quantity } from '../../src/library/wording.ts';
import { CHANNEL_OPTION, type Channel, checkChannel } from '../../src/toolchain/image/measurements.ts';
import { cliEntries, layOutCli, packCli } from './pack/cli.ts';
import { compile } from './pack/compile.ts';
import { CREATE_ENTRY, packCreate } from './pack/create.ts';
import { packLibrary } from './pack/library.ts';
import { parseRepository } from './pack/repository.ts';
import { layOutServer, packServer, serverEntries } from './pack/server.ts';
import { type Publication, ROOT } from './pack/tarball.ts';
import { layOutToolchain, packToolchain, toolchainEntries } from './pack/toolchain.ts';
import { listMismatches, readManifests, type Versioned } from './versions.ts';

/**
 * Folders of the packed files. Parts of the prover are left out, because they have installed files that git
 * ignores.
 */
const SOURCES = [
  'library',
  'service',
  'server',
  'apps',
  'devnet',
  'testing',
  'cli',
  'toolchain',
  'create',
  'prover/backend',
  'prover/frontend',
  'prover/keys',
].map((folder) => `src/${folder}`);

/** The commit from which the packages are made. */
export interface Source {
  /** Id of the commit; null outside a git repository. */
  readonly commit: string | null;
  /** Tags of that commit. */
  readonly tags: readonly string[];
}

/**
 * Returns the version of the packages. In the channel `stable`, it is the version of package.json.
 *
 * @throws ConfigError, if the commit can't be named, or if a stable version is packed from a commit without
 *   its tag
 */
export function formatVersion(version: string, channel: Channel, { commit, tags }: Source): string {
  if (channel === 'stable') {
    if (tags.includes(`v${version}`)) return version;
    throw new ConfigError(`CHANNEL=stable packs version ${version} only at its tag: v${version}`);
  }
  if (commit === null) {
    throw new ConfigError('CHANNEL=experimental names the commit in the version: run it in a git repository');
  }
  // An identifier that has only digits must not begin with a zero (Semantic Versioning 2.0.0, item 9).
  const shortId = commit.slice(0, 12);
  return `${version}-experimental.${/^0\d+$/.test(shortId) ? commit : shortId}`;
}

/** The package.json of the repository. */
export interface RepositoryManifest extends Versioned {
  readonly version: string;
  /** The public repository, if there is one. */
  readonly repository?: { readonly url: string };
}

/**
 * Returns the version, channel and repository that all packages of a commit share.
 *
 * @throws ConfigError, if the commit has no version in the channel, or a stable version has no public
 *   repository
 */
export function describePublication(
  { version, repository }: RepositoryManifest,
  channel: Channel,
  source: Source,
): Publication {
  const packedVersion = formatVersion(version, channel, source);
  const ref = channel === 'stable' ? `v${version}` : (source.commit ?? '');
  const publicRepository = parseRepository(repository?.url, ref);
  if (channel === 'stable' && publicRepository === undefined) {
    throw new ConfigError(
      'CHANNEL=stable needs the public repository, which npm compares with the provenance of a package: name it in package.json by "repository": {"type": "git", "url": "git+https://github.com/<owner>/<name>.git"}',
    );
  }
  return { version: packedVersion, channel, repository: publicRepository };
}

/** @throws ConfigError, if the packages of the repository have several versions */
function readRepositoryManifest(): RepositoryManifest {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const mismatches = listMismatches(manifest.version, [...readManifests(ROOT).values()]);
  if (mismatches.length > 0)
    throw new ConfigError(`the packages have several versions:\n${mismatches.join('\n')}`);
  return manifest;
}

function readSource(): Source {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return { commit: git('rev-parse', 'HEAD'), tags: git('tag', '--points-at', 'HEAD').split('\n') };
  } catch {
    return { commit: null, tags: [] };
  }
}

function pack(channel: Channel): Result {
  const publication = describePublication(readRepositoryManifest(), channel, readSource());
  compile([...serverEntries(), ...cliEntries(), ...toolchainEntries(), CREATE_ENTRY]);
  const [serverModules, cliModules] = [layOutServer(), layOutCli()];
  // A module that both server and program contain belongs to the server: the toolchain runs applications,
  // which import the server's package.
  const internal = layOutToolchain(new Map([...cliModules, ...serverModules]));
  const tarballs = [
    packLibrary(publication),
    packServer(
      publication,
      internal.filter((module) => serverModules.has(module)),
    ),
  ];
  const installed = [
    ...tarballs,
    packCli(
      publication,
      internal.filter((module) => !serverModules.has(module)),
    ),
    packToolchain(publication, tarballs),
  ];
  const packages = [...installed, packCreate(publication, installed)];
  return {
    json: { version: publication.version, channel, packages },
    text: packages
      .map(
        ({ file, files, bytes }) =>
          `${file}: ${quantity(files, 'file')}, ${quantity(bytes, 'byte')} (${channel})`,
      )
      .join('\n'),
  };
}

export const main = command({
  name: 'package',
  program: 'node scripts/check/pack.ts',
  purpose: `Packs the library as out/sui-enclave-<version>.tgz, the server as out/sui-enclave-server-<version>.tgz, the program
as out/sui-enclave-cli-<version>.tgz, and its toolchain as out/sui-enclave-toolchain-<version>.tgz. Also packs
create-sui-enclave, which writes a repository that depends on these packages. --channel stable needs an unchanged tree
at the tag of the version; --channel experimental, the default, adds the commit to the version.`,
  arguments: {},
  options: CHANNEL_OPTION,
  notes: 'exit codes: 0 packed; 1 refused or failed; 2 invalid command line',
  run({ options: { channel } }) {
    checkChannel(ROOT, channel, SOURCES);
    return pack(channel);
  },
});

if (import.meta.main) await runAsProcess(main);
