/**
 * `sui-enclave verify_build`: builds out/nitro.eif a second time and compares both images byte by byte. The
 * second build uses no layers of the first, and runs with another clock, folder, umask, user and time zone.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { PROGRAM_FILE } from 'sui-enclave-cli/places';
import { path } from 'sui-enclave-cli/values';
import { chooseBuildExit } from './build.ts';
import { compareEifs } from './compare.ts';
import { findBuilder } from './container.ts';
import { shareModules } from './share_modules.ts';
import { APP_DIR_OPTION, findSource } from './source.ts';

/**
 * Lock file of libfaketime, which gives the programs of the second build another time. No other build has it.
 */
const CLOCK_LOCK = 'test/src/toolchain/image/clock.lock.json';
const CLOCK_LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const CLOCK_OFFSET = '+400d';

/** Properties of the user and the machine that a build could leak into its image. */
const CHANGED_ENVIRONMENT = {
  USER: 'somebody',
  LOGNAME: 'somebody',
  TZ: 'Pacific/Kiritimati',
  LC_ALL: 'C.UTF-8',
  SOURCE_DATE_EPOCH: '1234567890',
};

export const main = command({
  name: 'verify_build',
  purpose:
    'Builds out/nitro.eif again, with another clock, folder, umask and user, and compares both files byte for byte.',
  arguments: {},
  options: {
    ...APP_DIR_OPTION,
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
  },
  chooseExit: chooseBuildExit,
  run({ options }, { env }) {
    const { root, appDir, isApart } = findSource(options['app-dir']);
    findBuilder();
    const nodeBinary = env['NODE_BINARY'];
    const dir = mkdtempSync(join(tmpdir(), 'verify-build-'));
    try {
      const copy = join(dir, 'elsewhere');
      if (isApart) copyRepository(root, copy);
      else copyTree(root, copy);
      // The second build shares the tools with the first. Packages that get into its image are unpacked
      // again.
      if (!isApart) shareModules(root, copy);
      const program = isApart ? PROGRAM_FILE : 'src/cli/main.ts';
      const build = [
        program,
        'build',
        '--fresh',
        '--dir',
        join(dir, 'build'),
        '--out',
        join(dir, 'out'),
        ...(isApart ? [] : ['--app-dir', appDir]),
        '--cache',
        resolve(options.cache),
        '--extra-lock',
        CLOCK_LOCK,
        '--overlay',
        makeOverlay(dir),
      ];
      const { status } = spawnSync('sh', ['-c', 'umask 077; exec "$0" "$@"', process.execPath, ...build], {
        cwd: copy,
        env: { ...env, ...CHANGED_ENVIRONMENT, ...(nodeBinary && { NODE_BINARY: resolve(nodeBinary) }) },
        stdio: ['ignore', 2, 2],
      });
      if (status !== 0) throw new ImageError('COMMAND_FAILED', 'the second build failed: see above');
      const differences = compareEifs(
        readFileSync(join(root, 'out/nitro.eif')),
        readFileSync(join(dir, 'out/nitro.eif')),
      );
      if (!readFileSync(join(root, 'out/relay')).equals(readFileSync(join(dir, 'out/relay')))) {
        differences.push('out/relay');
      }
      if (differences.length > 0) {
        throw new ImageError(
          'COMMAND_FAILED',
          `the two builds differ:\n${differences.map((line) => `  ${line}`).join('\n')}`,
        );
      }
      return { json: { same: true }, text: 'Both builds are the same, byte for byte.' };
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
});

/** Folders of a repository that are not copied. The second build takes packages from the cache again. */
const GENERATED_FOLDERS = new Set(['node_modules', 'out', 'build', '.git']);

function copyRepository(root: string, to: string): void {
  cpSync(root, to, { recursive: true, filter: (path) => !GENERATED_FOLDERS.has(relative(root, path)) });
}

/** Copies the current tree, without files that git ignores. */
function copyTree(root: string, to: string): void {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter((name) => name !== '')) {
    mkdirSync(dirname(join(to, file)), { recursive: true });
    cpSync(join(root, file), join(to, file));
  }
}

/** Writes a tar archive that gives the programs of the build another time and user name. @returns its path */
function makeOverlay(dir: string): string {
  const files = join(dir, 'overlay');
  mkdirSync(join(files, 'etc'), { recursive: true });
  const write = (name: string, line: string) =>
    writeFileSync(join(files, name), `${line}\n`, { mode: 0o644 });
  write('etc/ld.so.preload', CLOCK_LIBRARY);
  write('etc/faketimerc', CLOCK_OFFSET);
  write('etc/passwd', `${CHANGED_ENVIRONMENT.USER}:x:0:0::/home/${CHANGED_ENVIRONMENT.USER}:/bin/sh`);
  const overlay = join(dir, 'overlay.tar');
  execFileSync('tar', ['-cf', overlay, '-C', files, 'etc/ld.so.preload', 'etc/faketimerc', 'etc/passwd']);
  return overlay;
}

if (import.meta.main) await runAsProcess(main);
