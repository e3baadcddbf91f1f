/** `npm run test:move [package…]`: the unit tests of the packages in `move/`, without the Sui CLI. */
import { readArguments, runMain, Usage } from '../command.ts';
import { frameworkOf, packageNames, testPackage } from '../sui/move_packages.ts';

const USAGE = `usage: npm run test:move -- [<package>…]

Compiles the packages of move/, or those that are named, and runs their unit tests, on a stand-in of Sui's framework.
FRAMEWORK=fetch has Sui's own fetched from GitHub; SUI_FRAMEWORK_DIR names a copy of crates/sui-framework/packages.

exit codes: 0 passed; 1 failed; 2 the command line can't be used`;

async function main(): Promise<void> {
  const { positionals } = readArguments(USAGE, {}, true);
  const known = packageNames();
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new Usage(`there is no package ${unknown} in move/; there are ${known.join(', ')}\n\n${USAGE}`);
  }
  const framework = frameworkOf(process.env);
  console.log(`Move packages, on ${framework.description}`);
  for (const name of positionals.length > 0 ? positionals : known) {
    const run = await testPackage(name, framework);
    console.log(`\nmove/${name}\n${run.output.trimEnd()}`);
    for (const path of run.leftOut) {
      console.log(`Not run: ${path} needs the Sui CLI (cd move/${name} && sui move test)`);
    }
    if (!run.passed) process.exitCode = 1;
  }
}

await runMain(main);
