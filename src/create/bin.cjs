#!/usr/bin/env node
// Any version of Node may run this file, so it is CommonJS without types. The program that it imports needs a
// Node that runs TypeScript.
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
