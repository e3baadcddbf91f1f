// Installs the packages of a folder's lockfile (npm ci), unless they are installed. Of several at once, such as the first
// make in each of three terminals, one installs, and the others wait for it. It is written for old versions of Node:
// CommonJS, no types, no packages.
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
 * Returns a descriptor with an exclusive lock. The kernel releases it when every process that has the descriptor has ended,
 * by whatever signal: nothing is left over that a later command would wait for.
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

/** Node has no flock(2). The command locks the open file that it shares with this process, which keeps the lock. */
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
 * Requires a Node that is new enough: with an older one, npm leaves out packages that need a newer one, and succeeds. On Linux on x64 the pinned Node comes
 * with the packages, and the limits are those of the bundler's binding; elsewhere the project runs in this Node.
 */
function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isPinnedHere = process.platform === 'linux' && process.arch === 'x64';
  if (major >= 24) return;
  if (isPinnedHere && ((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major === 23))
    return;
  const accepted = isPinnedHere ? '20.19+, 22.12+ or 24+' : '24+';
  fail(
    `This project is installed with Node ${accepted}, and this is ${process.version} (${process.execPath}).\n` +
      'CONTRIBUTING.md says how to get one on Debian.',
  );
}

/** Decides as make does whether the packages are installed. */
function isInstalled(folder, installed) {
  const changed = (file) => statSync(file, { bigint: true, throwIfNoEntry: false })?.mtimeNs;
  const at = changed(installed);
  return ['package.json', 'package-lock.json'].every((file) => at >= changed(join(folder, file)));
}

const [folder = '.', ...options] = process.argv.slice(2);
const installed = join(folder, 'node_modules/.package-lock.json');
requireNode();
const descriptor = lock();
// Another command may have installed them meanwhile.
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
  // npm writes it last, but not always with the present time.
  utimesSync(installed, new Date(), new Date());
}
closeSync(descriptor);
