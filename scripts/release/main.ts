/**
 * `npm run bump -- X.Y.Z`: prepares a release: sets the version of all packages, dates the changelog's
 * unreleased part, commits and tags. It only prints what it would do, unless it gets `--apply`. Everything is
 * checked before anything is written. Nothing is pushed or published.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { command, type Result, runAsProcess } from '../../src/cli/command.ts';
import { ConfigError } from '../../src/library/errors.ts';
import { quantity } from '../../src/library/wording.ts';
import { ROOT } from '../check/pack/tarball.ts';
import { listMismatches, readManifests } from '../check/versions.ts';
import { type Bump, bumpChangelog, bumpLock, bumpManifest, isNewer, isReleaseVersion } from './changes.ts';

const CHANGELOG = 'CHANGELOG.md';

export interface Release {
  /** Folder of the repository. */
  readonly root: string;
  /** The new version, three numbers. */
  readonly version: string;
  /** Date in the changelog, such as 2026-01-31. */
  readonly date: string;
  /** Whether to write, commit and tag. */
  readonly apply: boolean;
}

interface Change {
  /** Path in the repository. */
  readonly path: string;
  readonly content: string;
  /** Number of added lines, or, if the change adds none, of changed lines. */
  readonly lines: number;
}

/**
 * Lists the changes of a release of the repository at `root`. With `apply`, writes, commits and tags them.
 *
 * @throws ConfigError before it writes, if the tree, the version or the changelog is not ready
 */
export function prepareRelease({ root, version, date, apply }: Release): Result {
  const git = (...args: string[]) => runGit(root, args);
  const tag = `v${version}`;
  const manifests = readManifests(root);
  const { version: from = '' } = manifests.get('package.json') ?? {};
  checkVersion(version, from);
  checkTree(git, tag);
  const mismatches = listMismatches(from, [...manifests.values()]);
  if (mismatches.length > 0) {
    throw new ConfigError(`the packages have several versions:\n${mismatches.join('\n')}`);
  }
  const names = new Set([...manifests.values()].map(({ name = '' }) => name));
  const changes = listChanges(root, git, { names, from, to: version }, date);
  const message = `Release ${version}`;
  const commit = apply ? applyChanges(root, git, changes, { tag, message }) : null;
  const files = changes.map(({ path, lines }) => ({ path, lines }));
  const text = [
    `${from} becomes ${version} (${date}):`,
    ...files.map(({ path, lines }) => `  ${path}: ${quantity(lines, 'line')}`),
    `  commit "${message}", tag ${tag}`,
    commit === null
      ? 'Nothing has changed yet: pass --apply to make these changes.'
      : `Done: ${commit}. Nothing is pushed: git push --atomic origin HEAD ${tag}`,
  ].join('\n');
  return { json: { from, version, date, files, message, tag, commit }, text };
}

type Git = (...args: string[]) => string;

/** Runs git. @throws ConfigError with the first line of git's error output */
function runGit(root: string, args: readonly string[]): string {
  try {
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio }).trim();
  } catch (cause) {
    const [line] = String((cause as { stderr?: string }).stderr ?? cause).split('\n');
    throw new ConfigError(`git ${args[0]} failed: ${line}`, { cause });
  }
}

function checkVersion(version: string, from: string): void {
  if (!isNewer(version, from)) {
    throw new ConfigError(`the version ${version} must be newer than ${from}, the version in package.json`);
  }
}

/** Checks in advance what could make the commit or the tag fail. */
function checkTree(git: Git, tag: string): void {
  const changed = git('status', '--porcelain');
  if (changed !== '') throw new ConfigError(`commit or remove these changes first:\n${changed}`);
  if (git('tag', '--list', tag) !== '')
    throw new ConfigError(`the tag ${tag} exists: choose a newer version`);
  // These fail if git does not know the author's name and address.
  for (const ident of ['GIT_AUTHOR_IDENT', 'GIT_COMMITTER_IDENT']) git('var', ident);
}

function listChanges(root: string, git: Git, bump: Bump, date: string): Change[] {
  const files = git('ls-files', '-z', '*package.json', '*package-lock.json').split('\0').filter(Boolean);
  const updates: [path: string, change: (text: string) => string][] = [
    [CHANGELOG, (text) => bumpChangelog(text, bump.to, date)],
    ...files.map((path): [string, (text: string) => string] => [
      path,
      (text) => (basename(path) === 'package.json' ? bumpManifest(text, bump) : bumpLock(text, bump)),
    ]),
  ];
  return updates.flatMap(([path, change]) => {
    const before = readFileSync(join(root, path), 'utf8');
    const content = change(before);
    return content === before ? [] : [{ path, content, lines: countNewLines(before, content) }];
  });
}

/** Returns how many lines were added, or, if both texts have the same number of lines, how many differ. */
function countNewLines(before: string, content: string): number {
  const [lines, linesBefore] = [content.split('\n'), before.split('\n')];
  if (lines.length !== linesBefore.length) return lines.length - linesBefore.length;
  return lines.filter((line, index) => line !== linesBefore[index]).length;
}

interface Names {
  readonly tag: string;
  readonly message: string;
}

/**
 * Writes, commits and tags the changes. If a step fails, it restores the files.
 *
 * @returns the id of the commit
 */
function applyChanges(root: string, git: Git, changes: readonly Change[], { tag, message }: Names): string {
  const before = git('rev-parse', 'HEAD');
  const paths = changes.map(({ path }) => path);
  try {
    for (const { path, content } of changes) writeFileSync(join(root, path), content);
    git('commit', '--quiet', '--message', message, '--', ...paths);
    git('tag', '--annotate', '--message', message, tag);
    return git('rev-parse', 'HEAD');
  } catch (error) {
    // The tree had no changes before, so this restores the files as they were.
    git('reset', '--quiet', before);
    git('restore', '--', ...paths);
    throw error;
  }
}

export const main = command({
  name: 'bump',
  program: 'npm run bump --',
  purpose: `Prints what a release of this version changes: package.json files, lockfiles, and CHANGELOG.md, whose unreleased part gets
the version and today's date (UTC). With --apply, writes it, commits it and tags the commit. Pushes and publishes nothing.`,
  arguments: {
    version: {
      schema: v.pipe(v.string(), v.check(isReleaseVersion, 'must be three numbers, such as 1.2.3')),
    },
  },
  options: { apply: { help: 'write, commit and tag' } },
  example: '1.2.3 --apply',
  notes: 'exit codes: 0 printed or done; 1 refused or failed; 2 invalid command line',
  run({ args: { version }, options: { apply } }) {
    return prepareRelease({ root: ROOT, version, date: new Date().toISOString().slice(0, 10), apply });
  },
});

if (import.meta.main) await runAsProcess(main);
