/** `npm run test:move [package…]`: runs the unit tests of the packages in `move/`, without the Sui CLI. */
import { join } from 'node:path';
import { command, EXIT, runAsProcess, UsageError } from '../../src/cli/command.ts';
import { text } from '../../src/cli/values.ts';
import { applicationNames } from '../../src/server/application/load_application.ts';
import { testMove } from '../../src/toolchain/dev/test.ts';
import { chooseFramework } from '../../src/toolchain/move/packages.ts';
import { findProject } from '../../src/toolchain/project.ts';

export const main = command({
  name: 'test_move',
  program: 'npm run test:move --',
  purpose: `Compiles the packages of move/, or those that are named, and runs their unit tests, on a stub of Sui's framework.
If tests use signed_<name>, the application with the package's name first signs these answers.
FRAMEWORK=fetch uses Sui's own framework, from GitHub; SUI_FRAMEWORK_DIR names a copy of crates/sui-framework/packages.`,
  arguments: { package: { schema: text, optional: true, repeated: true } },
  options: {},
  notes: 'exit codes: 0 passed; 1 failed; 2 invalid command line',
  async run({ args: { package: names } }, { env, io }) {
    const project = findProject();
    const movePackages = project.movePackages();
    const unknown = names.find((name) => !movePackages.has(name));
    if (unknown !== undefined) {
      throw new UsageError(`move/ has no package ${unknown}; it has ${[...movePackages.keys()].join(', ')}`);
    }
    const applications = applicationNames(join(project.root, 'src/apps'));
    const framework = chooseFramework(env);
    io.log(`Move packages, on ${framework.description}`);
    const packages: { name: string; passed: boolean; output: string; leftOut: readonly string[] }[] = [];
    for (const [name, folder] of movePackages) {
      if (names.length > 0 && !names.includes(name)) continue;
      const application = applications.includes(name) ? project.application(name) : undefined;
      const run = await testMove(application, [name, folder], framework);
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
