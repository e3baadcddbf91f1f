/** Fetches exactly one commit, and checks whether a branch contains it. Checks out no file. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Environment, UsageError } from 'sui-enclave-cli/command_line';
import { printable } from 'sui-enclave-cli/printable';
import { type Address, sourceAddress } from './address.ts';
import { AuditError } from './errors.ts';
import { type GitOutcome, LIMITS, type Limits, makeRepository, type Repository, runGit } from './git.ts';

export interface CommitRequest {
  /** Id of the commit in hexadecimal. */
  readonly commit: string;
  /** An empty folder, to which everything is written. */
  readonly work: string;
  readonly env: Environment;
  readonly limits?: Limits;
}

/**
 * Opens a repository that has the commit: the repository that the auditor names, or else the one that the
 * chain names.
 *
 * @param override address of a repository, or folder of a clone, that the auditor names
 * @returns the repository, and its address if it was fetched
 * @throws UsageError; AuditError: SOURCE_REFUSED, and as `fetchCommit` does
 */
export async function openSource(
  url: string,
  override: string | undefined,
  request: CommitRequest,
  progress: (line: string) => void,
): Promise<{ readonly repository: Repository; readonly address: Address | undefined }> {
  mkdirSync(request.work, { recursive: true });
  if (override !== undefined && !override.includes('://')) {
    progress(`Reading ${request.commit} from ${printable(override)}`);
    return { repository: await openClone(override, request), address: undefined };
  }
  const address = await sourceAddress(override ?? url, override !== undefined);
  progress(`Fetching ${request.commit} from ${printable(address.url)}`);
  return { repository: await fetchCommit(address, request), address };
}

/**
 * Fetches a commit without its ancestors.
 *
 * @throws AuditError: COMMIT_MISSING, SOURCE_TOO_LARGE; NOT_FULLY_CHECKED, if the repository does not answer
 */
export async function fetchCommit(
  { url, resolved }: Address,
  { commit, work, env, limits = LIMITS }: CommitRequest,
): Promise<Repository> {
  const repository = await makeRepository(work, 'commit.git', commit, env);
  const outcome = await runGit(
    repository,
    ['fetch', '--quiet', '--depth', '1', '--no-tags', '--no-recurse-submodules', '--', url, commit],
    { ...limits, settings: createPinSettings(resolved) },
  );
  if (outcome.status === 0) return repository;
  throw createFailure(outcome, `the commit ${commit}`, url, limits);
}

/**
 * Checks whether a branch or a tag of the repository contains the commit. Hosts may also serve commits of
 * forks at a repository's address.
 *
 * @throws AuditError: COMMIT_NOT_ON_BRANCH; NOT_FULLY_CHECKED
 */
export async function checkOnBranch(
  { url, resolved }: Address,
  { commit, work, env, limits = LIMITS }: CommitRequest,
): Promise<void> {
  const repository = await makeRepository(work, 'history.git', commit, env);
  // Only commits are fetched, without their trees. The filter needs a remote with a name.
  const remote = [`remote.source.url=${url}`, 'remote.source.promisor=true'];
  const settings = [...createPinSettings(resolved), ...remote, 'remote.source.partialclonefilter=tree:0'];
  const refs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
  const outcome = await runGit(
    repository,
    ['fetch', '--quiet', '--filter=tree:0', '--no-tags', '--no-recurse-submodules', 'source', ...refs],
    { ...limits, settings },
  );
  if (outcome.status !== 0) {
    const why = printable(outcome.stderr.trim().split('\n').at(-1) ?? '');
    throw new AuditError(
      'NOT_FULLY_CHECKED',
      `could not check whether a branch contains the commit, since the history could not be read${why && `: ${why}`}`,
    );
  }
  const containing = await runGit(repository, ['for-each-ref', '--count=1', '--contains', commit], limits);
  if (containing.status === 0 && containing.stdout !== '') return;
  throw new AuditError(
    'COMMIT_NOT_ON_BRANCH',
    `no branch and no tag of ${printable(url)} contains the commit ${commit}: it was replaced, or is of a fork`,
  );
}

function createPinSettings(resolved: string | undefined): string[] {
  return resolved === undefined ? [] : [`http.curloptResolve=${resolved}`];
}

/** Pattern of git's output if the repository answers, but does not have the commit. */
const COMMIT_MISSING =
  /not our ref|unadvertised object|could not (find|parse) |couldn't find remote ref|did not send all necessary|bad object|not a commit/i;

/** Pattern of git's output if a file, the memory or a format exceeds a limit. */
const LIMIT =
  /out of memory|file size limit|write error|fetch-pack: invalid index-pack output|died of signal/i;

function createFailure(
  { status, stderr, timedOut }: GitOutcome,
  subject: string,
  url: string,
  limits: Limits,
): AuditError {
  const where = printable(url);
  if (timedOut) {
    return new AuditError(
      'SOURCE_TOO_LARGE',
      `${where} did not send ${subject} within ${limits.ms / 1000} s`,
    );
  }
  const line = printable(stderr.trim().split('\n').at(-1) ?? '');
  if (COMMIT_MISSING.test(stderr))
    return new AuditError('COMMIT_MISSING', `${where} does not have ${subject}`);
  if (status === null || LIMIT.test(stderr)) {
    return new AuditError(
      'SOURCE_TOO_LARGE',
      `${subject} of ${where} has more than ${limits.bytes / 1e6} MB, or more than fits into memory`,
    );
  }
  return new AuditError('NOT_FULLY_CHECKED', `${where} does not answer: ${line}`);
}

/**
 * Returns the objects of a clone on this machine, without its settings.
 *
 * @throws UsageError
 */
export async function openClone(folder: string, { commit, work, env }: CommitRequest): Promise<Repository> {
  const clone = resolve(folder);
  const objects = [join(clone, '.git/objects'), join(clone, 'objects')].find(
    (path) => existsSync(path) && statSync(path).isDirectory(),
  );
  if (objects === undefined || objects.includes(':')) {
    throw new UsageError(
      `--source ${printable(folder)} is neither an https address nor the folder of a clone`,
    );
  }
  const { environment, ...repository } = await makeRepository(work, 'commit.git', commit, env);
  return { ...repository, environment: { ...environment, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects } };
}

/** Time limit for fetching a history that the audit does not need, in milliseconds. */
const NAMED_MS = 60_000;

/**
 * Asks the repository that the config names for a commit that was fetched elsewhere. The answer does not
 * affect the verdict, since a commit is the same everywhere. But if that repository lacks the commit, other
 * people can't repeat this audit.
 *
 * @param find for tests: finds the address of that repository
 */
export async function askNamedRepository(
  url: string,
  { commit, work, env }: CommitRequest,
  find: (url: string) => Promise<Address> = (address) => sourceAddress(address, false),
): Promise<string> {
  const repository = `repository that the config names, ${printable(url)},`;
  const folder = join(work, 'named');
  mkdirSync(folder);
  try {
    await checkOnBranch(await find(url), { commit, work: folder, env, limits: { ...LIMITS, ms: NAMED_MS } });
    return `The ${repository} has the commit on a branch or a tag`;
  } catch (error) {
    if (!(error instanceof AuditError)) throw error;
    if (error.code === 'COMMIT_NOT_ON_BRANCH') {
      return `The ${repository} LACKS the commit: no branch and no tag contains it, so others can't audit this config`;
    }
    return `It is not known whether the ${repository} has the commit: ${error.message}`;
  }
}
