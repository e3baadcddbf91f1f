#!/usr/bin/env node
// The program of the installed package. It runs in whatever Node comes first, so it is written for old ones: CommonJS, no
// types. A Node that can't run TypeScript can't load an application.
'use strict';

if (process.features.typescript) {
  import('./main.js').then(({ runProgram }) => runProgram());
} else {
  console.error(
    `sui-enclave needs a Node that runs TypeScript, 22.18 or newer, and this is ${process.version} (${process.execPath}).`,
  );
  process.exitCode = 2;
}
