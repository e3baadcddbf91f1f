#!/usr/bin/env node
// Starts the program, in a clone and in the installed package. The first Node on the PATH runs this file. That Node may be
// old, so the file is CommonJS without types. A Node that can't run TypeScript can't load an application.
'use strict';
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const isClone = existsSync(join(__dirname, 'main.ts'));

function fail(message) {
  console.error(message);
  process.exitCode = 2;
}

if (!process.features.typescript) {
  fail(
    `sui-enclave needs a Node that runs TypeScript, 22.18 or newer, and this is ${process.version} (${process.execPath}).` +
      (isClone ? ' On Linux x64 `make install` brings one.' : ''),
  );
} else if (isClone && !existsSync(join(__dirname, '../../node_modules'))) {
  fail('The packages of this clone are not installed: run `make install`.');
} else {
  import(isClone ? './main.ts' : './main.js').then(({ runProgram }) => runProgram());
}
