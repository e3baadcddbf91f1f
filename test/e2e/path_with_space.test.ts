/**
 * Tests commands that start programs or bundle modules by their path, in a clone whose folder has a space
 * and a percent sign in its name.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Time limit for a machine with two cores that is busy with other tests. */
const TIMEOUT_MS = 240_000;
const folder = mkdtempSync(join(tmpdir(), 'with 50%20 of '));
const clone = join(folder, 'clone');

/**
 * Copies the files of this clone with their times, so that make does not compile the native programs again.
 */
beforeAll(() => {
  mkdirSync(join(clone, 'node_modules'), { recursive: true });
  const copy = 'git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -p -t "$0"';
  execFileSync('sh', ['-c', copy, clone], { cwd: ROOT });
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    const path = join(ROOT, 'node_modules', name);
    // Links to the repository's own packages are relative, and so point to the packages of the copy.
    const target = lstatSync(path).isSymbolicLink() ? readlinkSync(path) : path;
    symlinkSync(target, join(clone, 'node_modules', name));
  }
  symlinkSync(join(ROOT, 'build'), join(clone, 'build'));
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
  execFileSync('git', ['init', '--quiet'], { cwd: clone });
  execFileSync('git', [...identity, 'commit', '--quiet', '--allow-empty', '--message', 'a'], { cwd: clone });
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: clone,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { status, output: stdout + stderr };
};

test(
  'a clone with a space in its path passes the tests that preload, bundle or read files by a path',
  () => {
    const files = [
      'test/src/server/nsm/addon.test.ts',
      'test/src/server/application/schema_file.test.ts',
      'test/src/library/index.test.ts',
      'test/src/library/react/bundle.test.ts',
    ];
    const { status, output } = run('node_modules/vitest/vitest.mjs', 'run', ...files);
    expect([status, output]).toEqual([0, expect.stringMatching(/Test Files.* 4 passed/)]);
  },
  TIMEOUT_MS,
);

test(
  'a clone with a space in its path packs the packages',
  () => {
    const { status, output } = run('scripts/check/pack.ts');
    expect([status, output]).toEqual([0, expect.stringMatching(/^out\/create-sui-enclave-.*\.tgz: /m)]);
  },
  TIMEOUT_MS,
);
