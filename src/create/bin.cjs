#!/usr/bin/env node
// It runs in whatever Node comes first, so it is written for old ones: CommonJS, no types. What it writes needs a Node that
// runs TypeScript.
'use strict';

if (process.features.typescript) {
  import('./main.js').then(({ runProgram }) => {
    process.exitCode = runProgram();
  });
} else {
  console.error(
    `create-sui-enclave needs a Node that runs TypeScript, 22.18 or newer, and this is ${process.version} (${process.execPath}).`,
  );
  process.exitCode = 2;
}
