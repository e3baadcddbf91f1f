/** Audits the packages on chain. */
import { join } from 'node:path';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { quantity } from 'sui-enclave/wording';
import type { Environment } from 'sui-enclave-cli/command_line';
import type { Chain } from 'sui-enclave-cli/sui/chain';
import { isModelChain } from 'sui-enclave-cli/sui/network';
import { chooseFramework } from '../move/packages.ts';
import { type ComparedPackage, comparePackages, describeSource, describeVersion } from './bytecode.ts';
import { MoveCommit } from './commit.ts';
import { Compiler, type Modules } from './compile.ts';
import { AuditError } from './errors.ts';
import { checkOnBranch, openSource } from './fetch.ts';
import { type Contracts, readContracts } from './lineage.ts';
import { formerSources, type OlderSource } from './older_sources.ts';
import { ownRelease, RELEASES, type Release } from './releases.ts';
import { type AuditedSource, findMovePackages } from './source.ts';
import { writeTree } from './tree.ts';
import { Checks } from './verdict.ts';

export interface ContractAudit {
  readonly config: EnclaveConfig;
  readonly chain: Chain;
  readonly env: Environment;
  readonly checks: Checks;
  /** The folder for fetched files. */
  readonly work: string;
  /** Announces a step that takes time. */
  readonly progress: (line: string) => void;
  /** The repository that the auditor names instead of the repositories on chain. */
  readonly repository: string | undefined;
  /** Commits that the auditor names as sources of older versions. */
  readonly older: readonly OlderSource[];
  /** The version of this program. */
  readonly version: string;
  /** The releases before this program's. */
  readonly releases?: readonly Release[];
}

/** Findings of the comparison besides its rows. */
export interface AuditedContracts {
  /** The original ids of the packages whose future versions contracts would trust too. */
  readonly originals: readonly string[];
  /** The older versions that contracts can still run. */
  readonly callable: readonly ComparedPackage[];
}

const PACKAGES = 'the packages on chain';

/** Compares the packages on chain with the sources, and records a row for each. @throws SuiError */
export async function compareContracts(
  audit: ContractAudit,
  source: AuditedSource | undefined,
): Promise<AuditedContracts> {
  const { config, chain, checks } = audit;
  const contracts = await checks.compare(PACKAGES, 'the list of their versions', () =>
    readContracts(config, chain),
  );
  const [application = ''] = config.application.split('::');
  if (contracts === undefined) return { originals: [config.enclavePackage, application], callable: [] };
  const lineages = [
    contracts.enclave,
    contracts.application,
    ...contracts.dependencies.map((dependency) => dependency.lineage),
  ];
  const originals = [...new Set(lineages.map(([{ original }]) => original))];
  if (contracts.fault !== null) {
    checks.fault(
      'the other packages that the application runs with',
      'the list of their versions',
      contracts.fault,
    );
  }
  if (source === undefined) {
    checks.notChecked(PACKAGES, 'the sources', 'the sources can not be used');
    return { originals, callable: [] };
  }
  audit.progress('Compiling the Move packages');
  const packages = await checks.compare(PACKAGES, 'the sources', () => compare(audit, source, contracts));
  return { originals, callable: (packages ?? []).filter(({ isOlder, fault }) => isOlder && fault === null) };
}

async function compare(
  audit: ContractAudit,
  source: AuditedSource,
  contracts: Contracts,
): Promise<ComparedPackage[]> {
  const { config, chain, env, checks, version, releases = RELEASES } = audit;
  const compiler = new Compiler(chooseFramework(env), chain);
  const { isStub, description } = compiler.framework;
  const enclaveModules = await compiler.enclave();
  const feedModules: Modules = hasFeed(contracts) ? await compiler.feed() : new Map();
  const failures = new Checks();
  const packages = await comparePackages({
    config,
    contracts,
    enclaveModules,
    releases: [ownRelease(version, enclaveModules, feedModules), ...releases],
    // A difference from the stub proves nothing, unless the chain runs the stub itself.
    isDecisive: !isStub || isModelChain(await chain.identifier()),
    commits: listCommits({ ...audit, checks: failures }, source, compiler),
  });
  for (const compared of packages) {
    const { id, modules, fault } = compared;
    const against = describeSource(compared);
    const row = `${describeVersion(compared)}: ${quantity(modules.length, 'module')} (${modules.join(', ')}), compiled against ${description}`;
    if (fault === null) checks.same(`the package ${id}`, against, row);
    else checks.fault(`the package ${id}`, against, fault);
  }
  // Commits that can't be read matter only if a version is unknown.
  if (packages.some(({ fault }) => fault !== null)) checks.all.push(...failures.all);
  return packages;
}

/** Returns whether a package has the module `feed`. If none has it, `feed` need not be compiled. */
function hasFeed({ enclave, application, dependencies }: Contracts): boolean {
  const versions = [...enclave, ...application, ...dependencies.flatMap(({ lineage }) => lineage)];
  return versions.some(({ modules }) => modules.has('feed'));
}

/** Yields the config's commit, then the auditor's commits, then the commits that the config named before. */
async function* listCommits(
  audit: ContractAudit,
  source: AuditedSource,
  compiler: Compiler,
): AsyncGenerator<MoveCommit> {
  const { config, chain, checks, older } = audit;
  yield new MoveCommit(formatName(config.source?.commit), source.movePackages, compiler);
  for (const [index, next] of [...older, ...(await formerSources(config, chain))].entries()) {
    const name = formatName(next.commit);
    try {
      yield new MoveCommit(name, await takePackages(audit, next, index), compiler);
    } catch (error) {
      if (!(error instanceof AuditError)) throw error;
      checks.notChecked(name, 'older versions of the packages', error.message);
    }
  }
}

function formatName(commit: string | undefined): string {
  return `the commit ${commit}`;
}

async function takePackages(
  { repository: namedRepository, work, env, progress }: ContractAudit,
  { url, commit, folder }: OlderSource,
  index: number,
): Promise<ReadonlyMap<string, string>> {
  const request = { commit, work: join(work, `older-${index}`), env };
  const { repository, address } = await openSource(url, namedRepository, request, progress);
  if (address !== undefined) await checkOnBranch(address, request);
  return findMovePackages(await writeTree(repository, commit, join(request.work, 'tree')), folder);
}
