/** `npm run test:move [package…]`: the unit tests of the packages in `move/`, without the Sui CLI. */
import { EnclaveError } from '../src/errors.ts';
import { frameworkOf, packageNames, testPackage } from './move/packages.ts';

async function main(): Promise<boolean> {
  const framework = frameworkOf(process.env);
  console.log(`Move packages, on ${framework.description}`);
  const known = packageNames();
  const names = process.argv.length > 2 ? process.argv.slice(2) : known;
  let passed = true;
  for (const name of names) {
    if (!known.includes(name)) {
      console.error(`npm run test:move: there is no package ${name}; there are ${known.join(', ')}`);
      return false;
    }
    const run = await testPackage(name, framework);
    console.log(`\nmove/${name}\n${run.output.trimEnd()}`);
    for (const path of run.leftOut) {
      console.log(`Not run: ${path} needs the Sui CLI (cd move/${name} && sui move test)`);
    }
    passed &&= run.passed;
  }
  return passed;
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: unknown) => {
    if (!(error instanceof EnclaveError)) throw error;
    console.error(`npm run test:move: ${error.message}`);
    process.exitCode = 1;
  },
);
