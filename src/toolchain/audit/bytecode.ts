/**
 * Compares every version of the packages that an application runs with, byte by byte. Ignores the
 * packages' own ids.
 */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { printable } from 'sui-enclave-cli/printable';
import type { MoveCommit, PublishedPackage } from './commit.ts';
import type { Modules } from './compile.ts';
import { type AuditCode, AuditError } from './errors.ts';
import type { Contracts, Dependency, PackageVersion } from './lineage.ts';
import { feedModulesIn, type Release, releaseIn } from './releases.ts';

/** Comparison of a version of a package. */
export interface ComparedPackage {
  readonly name: 'enclave' | 'application' | 'dependency';
  /** Id of the version. */
  readonly id: string;
  /** Number of this version, from 1. */
  readonly version: number;
  /** Number of versions of the package. */
  readonly versions: number;
  /** The names of the modules that were compared. */
  readonly modules: readonly string[];
  /**
   * Source with the same bytecode, such as `the release 0.1.0` or `the commit 12ab…`; null if none is known.
   */
  readonly source: string | null;
  /** Folders of the commit, in `move/`. */
  readonly folders: readonly string[];
  /** Whether contracts can still run this version, although there is a newer one. */
  readonly isOlder: boolean;
  readonly fault: AuditError | null;
}

export interface Comparison {
  readonly config: Pick<EnclaveConfig, 'application' | 'packageVersion'>;
  readonly contracts: Contracts;
  /** Releases; the first is this program's. */
  readonly releases: readonly [Release, ...Release[]];
  /** The modules of this program's `enclave`. */
  readonly enclaveModules: Modules;
  /**
   * Whether the sources were compiled against the framework of the chain. If not, a difference proves
   * nothing.
   */
  readonly isDecisive: boolean;
  /** Commits, beginning with the config's. Each is read only when it is needed. */
  readonly commits: AsyncIterable<MoveCommit>;
}

/** A version that must match the sources of a commit. */
interface Candidate {
  readonly name: 'application' | 'dependency';
  readonly published: PackageVersion;
  readonly versions: number;
  /** Modules without those that a release of `enclave` or `feed` contains. */
  readonly modules: Modules;
  readonly requirements: PublishedPackage;
  /** Whether this is the latest version of the application, or the version that the latest one links to. */
  readonly isCurrent: boolean;
  readonly isOlder: boolean;
}

type Result = Pick<ComparedPackage, 'source' | 'folders' | 'fault'>;

/**
 * Compares every version of `enclave` with the releases. Compares the versions of other packages that can run
 * with the commits, or with a release if a version has only the release's modules.
 */
export async function comparePackages(comparison: Comparison): Promise<ComparedPackage[]> {
  const { contracts } = comparison;
  const candidates = [
    ...contracts.application.flatMap((version) => findApplicationCandidates(version, comparison)),
    ...contracts.dependencies.flatMap((dependency) => findDependencyCandidates(dependency, comparison)),
  ];
  const outcomes = await compareWithCommits(candidates, comparison);
  return [
    ...contracts.enclave.map((version) => compareWithReleases(version, comparison)),
    ...candidates.map((candidate): ComparedPackage => {
      const { name, published, versions, modules, isOlder } = candidate;
      const { source, folders, fault } = outcomes.get(candidate) ?? NOT_COMPARED;
      const { id, version } = published;
      return { name, id, version, versions, modules: listNames(modules), source, folders, isOlder, fault };
    }),
  ];
}

const COMPILED_ENCLAVE = 'move/enclave of this program compiles to';
const NOT_COMPARED: Result = {
  source: null,
  folders: [],
  fault: new AuditError('NOT_FULLY_CHECKED', 'a version was not compared'),
};

/** Returns whether framework and application are two packages. */
function isApart({ enclave, application }: Contracts): boolean {
  return enclave[0].original !== application[0].original;
}

function formatName({ name }: Release): string {
  return `the release ${name}`;
}

/** Returns whether a version of `enclave` accepts this config. */
function acceptsConfig({ modules }: PackageVersion, { config, releases }: Comparison): boolean {
  const release = releaseIn(modules, releases);
  return release === undefined || release.packageVersion === config.packageVersion;
}

function compareWithReleases(published: PackageVersion, comparison: Comparison): ComparedPackage {
  const { contracts, releases, enclaveModules } = comparison;
  const { id, version, linkage } = published;
  const release = releaseIn(published.modules, releases);
  const enclaveNames = Object.keys((release ?? releases[0]).modules);
  const modules = [
    ...enclaveNames,
    ...(isApart(contracts) ? [] : feedModulesIn(published.modules, releases)),
  ];
  const extraModules = isApart(contracts)
    ? listNames(published.modules).filter((name) => !modules.includes(name))
    : [];
  const [linkedId] = isApart(contracts) ? linkage.keys() : [];
  const message =
    release === undefined
      ? `${describeDifference(enclaveModules, selectModules(published.modules, enclaveNames), COMPILED_ENCLAVE)}, and equals no release that this program knows`
      : extraModules[0] !== undefined
        ? `has a module ${extraModules[0]}, which ${formatName(release)} does not have`
        : linkedId && `links to the package ${linkedId}, which ${formatName(release)} does not do`;
  const fault = message === undefined ? null : createDifference(published, message, comparison);
  const versions = contracts.enclave.length;
  const isOlder = version < versions && acceptsConfig(published, comparison);
  const source = release === undefined || fault !== null ? null : formatName(release);
  return { name: 'enclave', id, version, versions, modules, source, folders: [], isOlder, fault };
}

function findApplicationCandidates(published: PackageVersion, comparison: Comparison): Candidate[] {
  const { config, contracts, releases } = comparison;
  const { enclave, application } = contracts;
  const [, main = ''] = config.application.split('::');
  const isCurrent = published.version === application.length;
  const releasedNames = isApart(contracts)
    ? []
    : [
        ...Object.keys((releaseIn(published.modules, releases) ?? releases[0]).modules),
        ...feedModulesIn(published.modules, releases),
      ];
  const ownNames = listNames(published.modules).filter((name) => !releasedNames.includes(name));
  // A version that has only the modules of a release has no code of the application.
  if (ownNames.length === 0 && !isCurrent) return [];
  const linkedVersion = published.linkage.get(enclave[0].original)?.version ?? 1;
  const enclaveVersions = isApart(contracts) ? enclave.slice(linkedVersion - 1) : [published];
  const modules = selectModules(published.modules, ownNames);
  return [
    {
      name: 'application',
      published,
      versions: application.length,
      modules,
      isCurrent,
      requirements: describePublished(
        published,
        modules,
        isCurrent || modules.has(main) ? main : undefined,
        contracts,
      ),
      isOlder: !isCurrent && enclaveVersions.some((version) => acceptsConfig(version, comparison)),
    },
  ];
}

function findDependencyCandidates({ lineage, from }: Dependency, { contracts }: Comparison): Candidate[] {
  const currentId = contracts.application.at(-1)?.linkage.get(lineage[0].original)?.id;
  return lineage.slice(from - 1).map((published) => ({
    name: 'dependency',
    published,
    versions: lineage.length,
    modules: published.modules,
    isCurrent: published.id === currentId,
    requirements: describePublished(published, published.modules, undefined, contracts),
    isOlder: published.version < lineage.length,
  }));
}

function describePublished(
  { linkage }: PackageVersion,
  modules: Modules,
  main: string | undefined,
  contracts: Contracts,
): PublishedPackage {
  const linkedModules = contracts.dependencies.flatMap(({ lineage }): [string, ReadonlySet<string>][] => {
    const version = linkage.get(lineage[0].original)?.version;
    return version === undefined
      ? []
      : [[lineage[0].original, new Set(lineage[version - 1]?.modules.keys())]];
  });
  const enclave = isApart(contracts) ? contracts.enclave[0].original : undefined;
  return { modules: new Set(modules.keys()), main, linked: new Map(linkedModules), enclave };
}

async function compareWithCommits(
  candidates: readonly Candidate[],
  comparison: Comparison,
): Promise<ReadonlyMap<Candidate, Result>> {
  const matches = new Map(candidates.flatMap((candidate) => matchReleases(candidate, comparison)));
  const names: string[] = [];
  const isUnmatched = (candidate: Candidate) => matches.get(candidate)?.source == null;
  for await (const commit of comparison.commits) {
    for (const candidate of candidates.filter(isUnmatched)) {
      const outcome = await compareWithCommit(candidate, commit, comparison);
      // A later fault does not replace the fault from the config's own sources, which say most about the
      // current versions.
      if (names.length === 0 || outcome.source !== null) matches.set(candidate, outcome);
    }
    names.push(commit.name);
    if (!candidates.some(isUnmatched)) break;
  }
  for (const candidate of candidates.filter(isUnmatched)) {
    const { published, modules, isCurrent } = candidate;
    const fault = matches.get(candidate)?.fault;
    if (isCurrent && fault != null && fault !== NO_SOURCES) continue;
    const where = `the packages of all commits that were read (${names.join(', ')})`;
    const why = `${published.id} has the modules ${listNames(modules).join(', ')}, can run, and differs from ${where}: ask the admin for the commit that it was published from, and pass that commit as --older-source`;
    const unchecked = new AuditError('NOT_FULLY_CHECKED', why);
    matches.set(candidate, { source: null, folders: [], fault: unchecked });
  }
  return matches;
}

/**
 * Returns the candidates that have the modules of a release and no other modules. They need no commit, no
 * matter who published them.
 */
function matchReleases(candidate: Candidate, { releases }: Comparison): [Candidate, Result][] {
  const { modules } = candidate;
  const release = releaseIn(modules, releases);
  if (release === undefined) return [];
  const releasedNames = [...Object.keys(release.modules), ...feedModulesIn(modules, releases)];
  if (releasedNames.length !== modules.size) return [];
  return [[candidate, { source: formatName(release), folders: [], fault: null }]];
}

/** Error for a dependency whose sources are not in the commit. */
const NO_SOURCES = new AuditError('NOT_FULLY_CHECKED', 'the commit has no sources of the package');

async function compareWithCommit(
  { name, published, modules, requirements }: Candidate,
  commit: MoveCommit,
  comparison: Comparison,
): Promise<Result> {
  try {
    if (name === 'dependency' && !commit.declares(requirements)) throw NO_SOURCES;
    const { folders, modules: compiled } = await commit.compile(requirements);
    const compiledHere = compiled.filter(({ address }) =>
      [UNPUBLISHED, published.original].includes(address),
    );
    const expected = new Map(compiledHere.map(({ name: module, bytes }) => [module, bytes]));
    const from = folders.map((folder) => `move/${printable(folder)}`).join(', ');
    const message = describeDifference(
      expected,
      modules,
      `the sources compile to (${from} of ${commit.name})`,
    );
    if (message !== undefined) throw createDifference(published, message, comparison);
    return { source: commit.name, folders, fault: null };
  } catch (error) {
    if (!(error instanceof AuditError)) throw error;
    return { source: null, folders: [], fault: error };
  }
}

const UNPUBLISHED = normalizeSuiAddress('0x0');

/**
 * Returns the first difference, as a phrase that follows a package's name; undefined if the modules are
 * equal.
 */
function describeDifference(expected: Modules, actual: Modules, sources: string): string | undefined {
  for (const [name, bytes] of expected) {
    const module = actual.get(name);
    if (module === undefined) return `lacks the module ${name}, which ${sources}`;
    if (Buffer.compare(module, bytes) !== 0) return `has a module ${name} that differs from what ${sources}`;
  }
  const extraModule = listNames(actual).find((name) => !expected.has(name));
  return extraModule && `has a module ${extraModule}, which the sources do not have`;
}

function createDifference({ id }: PackageVersion, message: string, { isDecisive }: Comparison): AuditError {
  const code: AuditCode = isDecisive ? 'BYTECODE_DIFFERS' : 'NOT_FULLY_CHECKED';
  const advice = isDecisive
    ? ''
    : ". It was compiled against a stub of Sui's framework: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR, to know whether it differs";
  return new AuditError(code, `the package ${id} ${message}${advice}`);
}

function listNames(modules: Modules): string[] {
  return [...modules.keys()].sort();
}

function selectModules(modules: Modules, names: readonly string[]): Modules {
  return new Map([...modules].filter(([name]) => names.includes(name)));
}

/** Describes a version of a package for people. */
export function describeVersion({ name, version, versions }: ComparedPackage): string {
  const packageNames = {
    enclave: 'enclave',
    application: 'the application',
    dependency: 'a package that it calls',
  };
  return `version ${version} of ${versions} of ${packageNames[name]}`;
}

/** Describes the source that a version was compared with, or that it matches. */
export function describeSource({ name, source, folders, modules }: ComparedPackage): string {
  const released = modules.includes('feed') ? 'move/enclave and move/feed' : 'move/enclave';
  if (name === 'enclave') return source === null ? `the releases of ${released}` : `${source} of ${released}`;
  if (source === null) return "the sources' modules";
  if (folders.length === 0) return `${source} of ${released}`;
  return `${folders.map((folder) => `move/${folder}`).join(' and ')} of ${source}`;
}
