/** `npm run test:move [package…]`: the unit tests of the packages in `move/`, without the Sui CLI. */
import { command, EXIT, runAsProcess, UsageError } from '../../src/commands/command.ts';

const USAGE = `usage: npm run test:move -- [<package>…]

Compiles the packages of move/, or those that are named, and runs their unit tests, on a stand-in of Sui's framework.
FRAMEWORK=fetch has Sui's own fetched from GitHub; SUI_FRAMEWORK_DIR names a copy of crates/sui-framework/packages.

exit codes: 0 passed; 1 failed; 2 the command line can't be used`;

export const main = command({
  usage: USAGE,
  options: {},
  repeats: true,
  async run({ positionals }, { env, io }) {
    const { frameworkOf, packageNames, testPackage } = await import(
      '../../src/commands/sui/move_packages.ts'
    );
    const known = packageNames();
    const unknown = positionals.find((name) => !known.includes(name));
    if (unknown !== undefined) {
      throw new UsageError(`move/ has no package ${unknown}; it has ${known.join(', ')}`, USAGE);
    }
    const framework = frameworkOf(env);
    io.log(`Move packages, on ${framework.description}`);
    const packages: { name: string; passed: boolean; output: string; leftOut: readonly string[] }[] = [];
    for (const name of positionals.length > 0 ? positionals : known) {
      const run = await testPackage(name, framework);
      io.log(`\nmove/${name}\n${run.output.trimEnd()}`);
      for (const path of run.leftOut) {
        io.log(`Not run: ${path} needs the Sui CLI (cd move/${name} && sui move test)`);
      }
      const { passed, output, leftOut } = run;
      packages.push({ name, passed, output, leftOut });
    }
    return {
      exit: packages.every(({ passed }) => passed) ? EXIT.done : EXIT.failed,
      json: { framework: framework.description, packages },
    };
  },
});

if (import.meta.main) await runAsProcess(main);
