/**
 * Runs git for an audit, without settings, hooks, credentials or helpers of this machine or of the
 * repository. The audit's own repository is bare, and contains only fetched objects.
 */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from 'sui-enclave-cli/command_line';
import { AuditError } from './errors.ts';

/** Limits on what an audit reads from a repository. */
export interface Limits {
  readonly bytes: number;
  readonly files: number;
  readonly ms: number;
}

export const LIMITS: Limits = { bytes: 200_000_000, files: 20_000, ms: 10 * 60_000 };

/** First version of git that accepts the addresses to connect to (`http.curloptResolve`). */
const OLDEST = [2, 37] as const;

/** Memory limit of a git process, in KiB. */
const MEMORY_KIB = 4 << 20;

const MAX_OUTPUT = 1 << 20;

/** A bare repository of the audit. */
export interface Repository {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** @throws AuditError: NO_GIT */
export function checkGit(env: Environment): void {
  let version = '';
  try {
    version = execFileSync('git', ['--version'], { encoding: 'utf8', env: { PATH: env['PATH'] ?? '' } });
  } catch {
    throw new AuditError('NO_GIT', 'an audit fetches sources with git: apt-get install git');
  }
  const [, major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(version) ?? []).map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    throw new AuditError('NO_GIT', `an audit needs git ${OLDEST.join('.')} or newer`);
  }
}

/**
 * @param home an empty folder
 * @param env of the auditor, which gives the path of programs, and a certificate authority for git to trust
 *   (GIT_SSL_CAINFO)
 */
function createEnvironment(home: string, env: Environment): Record<string, string> {
  const { PATH = '', GIT_SSL_CAINFO: authority } = env;
  return {
    PATH,
    HOME: home,
    XDG_CONFIG_HOME: home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: 'https',
    GIT_NO_LAZY_FETCH: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_LFS_SKIP_SMUDGE: '1',
    ...(authority !== undefined && { GIT_SSL_CAINFO: authority }),
  };
}

/**
 * Makes a bare repository. @param commit a commit, whose id shows the hash function that the repository uses
 */
export async function makeRepository(
  parent: string,
  name: string,
  commit: string,
  env: Environment,
): Promise<Repository> {
  const home = join(parent, 'home');
  mkdirSync(home, { recursive: true });
  const repository = { folder: join(parent, name), environment: createEnvironment(home, env) };
  const format = commit.length === 64 ? 'sha256' : 'sha1';
  mkdirSync(repository.folder);
  const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`];
  await runGit(repository, args, { bytes: MAX_OUTPUT, ms: LIMITS.ms });
  return repository;
}

const SETTINGS = [
  'protocol.allow=never',
  'protocol.https.allow=always',
  'http.followRedirects=false',
  'http.proxy=',
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  // All objects arrive in one file, whose size the system limits.
  'fetch.unpackLimit=1',
  // Git does not hold larger files in memory.
  'core.bigFileThreshold=1m',
  'pack.threads=1',
  'credential.helper=',
  'gc.auto=0',
  'maintenance.auto=false',
];

/** Starts git in a process group of its own. @param bytes maximum size of a file that git writes */
export function startGit(
  { folder, environment }: Repository,
  args: readonly string[],
  { bytes, settings = [] }: { readonly bytes: number; readonly settings?: readonly string[] },
): ChildProcessWithoutNullStreams {
  const gitOptions = [...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]);
  // POSIX counts blocks of 512 bytes. Not every system limits memory.
  const script = `ulimit -f ${Math.ceil(bytes / 512)} && { ulimit -v ${MEMORY_KIB} 2>/dev/null || :; } && exec git "$@"`;
  return spawn('sh', ['-c', script, 'sh', '--git-dir', folder, ...gitOptions, ...args], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: 'pipe',
  });
}

/** Ends git and the processes that it started. */
export function stopGit({ pid }: ChildProcessWithoutNullStreams): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has ended already.
  }
}

export interface GitOutcome {
  /** Exit code; null if a signal ended git, as at a limit. */
  readonly status: number | null;
  readonly stdout: string;
  /** Standard error of git itself, without text of the remote side. */
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** Runs git to its end. Keeps about one megabyte of each output, and drops what follows. */
export async function runGit(
  repository: Repository,
  args: readonly string[],
  { ms, ...options }: { readonly bytes: number; readonly ms: number; readonly settings?: readonly string[] },
): Promise<GitOutcome> {
  const child = startGit(repository, args, options);
  child.stdin.end();
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      if (text[name].length < MAX_OUTPUT) text[name] += chunk;
    });
  }
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    stopGit(child);
  }, ms);
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject).once('close', resolve);
    });
    const stderr = text.stderr.split(/[\r\n]+/).filter((line) => !line.startsWith('remote:'));
    return { status, stdout: text.stdout, stderr: stderr.join('\n'), timedOut };
  } finally {
    clearTimeout(timer);
    // Helpers may have outlived git.
    stopGit(child);
  }
}
