// Installs the packages of a folder's lockfile (npm ci), unless they are installed. If several commands run this at once,
// such as the first make in each of three terminals, one installs, and the others wait for it. Old versions of Node can
// run this file: it is CommonJS, without types or packages.
//
// usage: node scripts/check/install.cjs FOLDER [OPTION OF NPM]...
'use strict';
const { spawnSync } = require('node:child_process');
const { closeSync, constants, mkdirSync, openSync, statSync, utimesSync } = require('node:fs');
const { dirname, join } = require('node:path');

const LOCK = 'build/install.lock';
const WAITING = 'Another command installs packages here: waiting until it ends.';
/** The flag of open(2) on macOS for a lock with the semantics of flock(2). */
const O_EXLOCK = 0x20;
/** The descriptor of the lock in the programs that inherit it. */
const INHERITED = '3';

/**
 * Returns a descriptor with an exclusive lock. The kernel releases the lock when every process that has the descriptor has
 * ended, even by a signal. So a later command never waits for a process that no longer exists.
 */
function lock() {
  mkdirSync(dirname(LOCK), { recursive: true });
  return process.platform === 'darwin' ? lockByOpen() : lockByFlock();
}

function lockByOpen() {
  const flags = constants.O_RDWR | constants.O_CREAT | O_EXLOCK;
  try {
    return openSync(LOCK, flags | constants.O_NONBLOCK);
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
  }
  console.log(WAITING);
  return openSync(LOCK, flags);
}

/** Locks by the command flock, since Node has no flock(2). This process shares the open file, and so keeps the lock. */
function lockByFlock() {
  const descriptor = openSync(LOCK, 'a');
  const stdio = ['ignore', 'inherit', 'inherit', descriptor];
  const flock = (...options) => {
    const { status, signal, error } = spawnSync('flock', [...options, INHERITED], { stdio });
    if (error || signal)
      fail(`flock, of the package util-linux, ${error ? `can't be run: ${error.code}` : 'was stopped'}`);
    return status === 0;
  };
  if (flock('-n')) return descriptor;
  console.log(WAITING);
  if (!flock('-x')) fail(`${LOCK} can't be locked`);
  return descriptor;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

/**
 * Requires a Node that is new enough. With an older Node, npm silently leaves out packages that need a newer version. On
 * Linux x64, the pinned Node comes with the packages, so this Node only has to satisfy the bundler's binding. Elsewhere,
 * the project runs in this Node.
 */
function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const hasPinnedNode = process.platform === 'linux' && process.arch === 'x64';
  if (major >= 24) return;
  if (hasPinnedNode && ((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major === 23))
    return;
  const accepted = hasPinnedNode ? '20.19+, 22.12+ or 24+' : '24+';
  fail(
    `This project must be installed with Node ${accepted}, but this is ${process.version} (${process.execPath}).\n` +
      'CONTRIBUTING.md says how to get such a Node on Debian.',
  );
}

/** Returns whether the packages are installed. Like make, it compares the times of the files. */
function isInstalled(folder, installed) {
  const modifiedAt = (file) => statSync(file, { bigint: true, throwIfNoEntry: false })?.mtimeNs;
  const installedAt = modifiedAt(installed);
  return ['package.json', 'package-lock.json'].every((file) => installedAt >= modifiedAt(join(folder, file)));
}

const [folder = '.', ...options] = process.argv.slice(2);
const installed = join(folder, 'node_modules/.package-lock.json');
requireNode();
const descriptor = lock();
// Another command may have installed the packages meanwhile.
if (!isInstalled(folder, installed)) {
  console.log(`Installing the packages of ${join(folder, 'package-lock.json')}`);
  const { status, error } = spawnSync(
    'npm',
    ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...options],
    {
      cwd: folder,
      // npm keeps the lock if this process is killed.
      stdio: ['inherit', 'inherit', 'inherit', descriptor],
    },
  );
  if (error) fail(`npm can't be run: ${error.code}`);
  if (status !== 0) process.exit(status ?? 1);
  // npm writes this file last, but not always with the present time.
  utimesSync(installed, new Date(), new Date());
}
closeSync(descriptor);
