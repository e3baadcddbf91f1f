/**
 * `sui-enclave test`: checks the types of an application, and the files that other commands generated from
 * it. Runs its tests, and runs the tests of its Move packages with answers that the application itself
 * signed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { ConfigError, isEnclaveError } from 'sui-enclave/errors';
import { command, EXIT, type Io, runAsProcess } from 'sui-enclave-cli/command';
import * as v from 'valibot';
import { generate, hasGenerated } from '../gen/generate.ts';
import { writeGenerated } from '../gen/generated_file.ts';
import { chooseFramework, type Framework, type TestRun, testPackage } from '../move/packages.ts';
import { type ApplicationFolder, findProject, type Project } from '../project.ts';
import { SCHEMA_FILE } from '../schema/app_schema.ts';
import { updateSchemas } from '../schema/schema.ts';
import { collectSignedAnswers, formatModules, HEADER } from './signed_modules.ts';

const STEPS = ['types', 'tests', 'generated', 'move'] as const;

/** Returns a program of an npm package that the project has installed. @throws ConfigError */
function installedProgram(root: string, packageName: string, file: string): string {
  try {
    return join(
      dirname(createRequire(join(root, 'package.json')).resolve(`${packageName}/package.json`)),
      file,
    );
  } catch {
    throw new ConfigError(`${packageName} is not installed in ${root}: run npm ci`);
  }
}

/**
 * Runs a program, whose output goes to the terminal, or with `--json` to standard error.
 *
 * @returns whether it succeeded
 */
async function succeeds(root: string, asJson: boolean, program: string, ...args: string[]): Promise<boolean> {
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    cwd: root,
    stdio: ['ignore', asJson ? 2 : 1, 2],
  });
  const [code] = await once(child, 'close');
  return code === 0;
}

/**
 * Returns an application's Move packages: in a clone, only the package with its name, if there is one; in an
 * author's repository, all packages.
 */
function listPackages(project: Project, { name }: ApplicationFolder): [name: string, folder: string][] {
  return [...project.movePackages()].filter(([packageName]) => !project.isClone || packageName === name);
}

/**
 * Tests a Move package. If its tests use a module of answers that the application signs, the module is
 * written first.
 *
 * @throws ConfigError if the module's file exists, but was not written by this command
 */
export async function testMove(
  application: ApplicationFolder | undefined,
  [name, folder]: readonly [name: string, folder: string],
  framework: Framework,
): Promise<TestRun> {
  if (application !== undefined && usesAnswers(folder)) {
    const answers = await collectSignedAnswers(application);
    if (answers === undefined) {
      throw new ConfigError(
        `the tests of move/${name} use signed answers, but ${application.name} has no fakes`,
      );
    }
    for (const [path, source] of formatModules(readPackageName(folder), answers))
      writeModule(join(folder, path), source);
  }
  return await testPackage(name, framework);
}

/** Returns whether a test uses a module of signed answers. */
function usesAnswers(folder: string): boolean {
  const tests = globSync('tests/*.move', { cwd: folder, exclude: ['tests/signed_*.move'] });
  return tests.some((path) => /^\s*use \w+::signed_\w+/m.test(readFileSync(join(folder, path), 'utf8')));
}

function readPackageName(folder: string): string {
  const manifest = readFileSync(join(folder, 'Move.toml'), 'utf8');
  return /^\s*name\s*=\s*["'](\w+)["']/m.exec(manifest)?.[1] ?? basename(folder);
}

function writeModule(file: string, source: string): void {
  const existingText = existsSync(file) ? readFileSync(file, 'utf8') : HEADER;
  if (!existingText.startsWith(HEADER)) {
    throw new ConfigError(`this command did not write ${file}: give that file another name`);
  }
  writeFileSync(file, source);
}

interface Step {
  readonly name: string;
  readonly passed: boolean;
}

/**
 * Compares the files that `schema` and `gen` wrote for an application. It compares only existing files, since
 * an application may have none.
 *
 * @throws EnclaveError that names the file that would change, or says why no file can be written
 */
export async function compareGenerated(application: ApplicationFolder, moveFolder: string): Promise<void> {
  if (existsSync(join(application.folder, SCHEMA_FILE))) await updateSchemas([application], true);
  if (hasGenerated(application, moveFolder)) writeGenerated(await generate(application, moveFolder), true);
}

async function isCurrent(
  { root }: Project,
  application: ApplicationFolder,
  io: Pick<Io, 'log'>,
): Promise<boolean> {
  try {
    await compareGenerated(application, join(root, 'move', application.name));
    return true;
  } catch (error) {
    if (!isEnclaveError(error)) throw error;
    io.log(`\n${error.code}: ${error.message}`);
    return false;
  }
}

async function testMovePackages(
  project: Project,
  application: ApplicationFolder,
  env: Readonly<Record<string, string | undefined>>,
  io: Pick<Io, 'log'>,
): Promise<boolean> {
  const packages = listPackages(project, application);
  const framework = chooseFramework(env);
  const outcomes: boolean[] = [];
  for (const entry of packages) {
    const { passed, output } = await testMove(application, entry, framework);
    io.log(`\nmove/${entry[0]}, on ${framework.description}\n${output.trimEnd()}`);
    outcomes.push(passed);
  }
  return outcomes.every((passed) => passed);
}

export const main = command({
  name: 'test',
  purpose:
    'Checks the types of an application, runs its tests, compares the files that schema and gen wrote for it, and runs the tests\nof its Move packages. If these use a module signed_<name>, the application first signs answers to the requests of\nstand_in.ts.',
  example: 'types tests',
  arguments: {
    step: {
      schema: v.picklist(STEPS, `must be one of ${STEPS.join(', ')}`),
      optional: true,
      repeated: true,
    },
  },
  options: {},
  notes: `environment:
  APP  in a clone, the application: a folder of src/apps
  FRAMEWORK, SUI_FRAMEWORK_DIR  Sui's framework for the Move packages; default: a stub of it

exit codes: 0 passed; 1 failed; 2 invalid command line`,
  async run({ args: { step: chosen } }, { env, io, asJson }) {
    const project = findProject();
    const application = project.application(env['APP']);
    const chosenSteps = chosen.length > 0 ? STEPS.filter((step) => chosen.includes(step)) : STEPS;
    const { root } = project;
    const steps: Step[] = [];
    const runners = {
      types: () => succeeds(root, asJson, installedProgram(root, 'typescript', 'bin/tsc'), '--noEmit'),
      tests: () =>
        succeeds(
          root,
          asJson,
          installedProgram(root, 'vitest', 'vitest.mjs'),
          'run',
          ...listTests(project, application),
        ),
      generated: () => isCurrent(project, application, io),
      move: () => testMovePackages(project, application, env, io),
    };
    for (const name of chosenSteps) steps.push({ name, passed: await runners[name]() });
    const failed = steps.filter(({ passed }) => !passed).map(({ name }) => name);
    return {
      exit: failed.length === 0 ? EXIT.done : EXIT.failed,
      json: { application: application.name, steps },
      text: failed.length === 0 ? `\nPassed: ${chosenSteps.join(', ')}.` : `\nFailed: ${failed.join(', ')}.`,
    };
  },
});

/** Lists the tests to run: in a clone, those in the application's folder; in an author's repository, all. */
function listTests(project: Project, { folder }: ApplicationFolder): string[] {
  return project.isClone ? [relative(project.root, folder)] : [];
}

if (import.meta.main) await runAsProcess(main);
