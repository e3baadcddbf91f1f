/** The framework of the commands, and what holds for every one of them. */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  command,
  EXIT,
  integer,
  PCRS_HINT,
  readFileArgument,
  UsageError,
} from '../../../src/commands/command.ts';
import { EnclaveError } from '../../../src/library/errors.ts';
import { call, callScript, spawnScript } from './run.ts';

class RefusedError extends EnclaveError {
  readonly code = 'REFUSED';
}

const main = command({
  usage: 'usage: npm run sample -- <from> [<to>] [options]',
  options: {
    level: { type: 'string', default: '1' },
    tag: { type: 'string', multiple: true },
  },
  positionals: ['from', 'to'],
  optional: 1,
  run({ values, positionals }, { env, io }) {
    if (positionals[0] === 'refuse') throw new RefusedError('this is refused');
    if (positionals[0] === 'fault') throw new TypeError('a fault');
    if (positionals[0] === 'read') io.log(io.stdin());
    const level = integer('level', values.level, 0, 10);
    io.log('step by step');
    const json = { level, tag: values.tag, positionals, home: env['HOME'], mist: 10n };
    return { ...(level > 9 && { exit: EXIT.failed }), json, text: 'the result' };
  },
});

/** A process that asks, run as its arguments say. @param input what a person types */
function asking(run: (program: string) => string[], input: string) {
  const module = new URL('../../../src/commands/command.ts', import.meta.url).href;
  const program = `import { runAsProcess } from '${module}'; await runAsProcess(async (argv, env, io) => { if (!io.ask) return 9; io.log('[' + (await io.ask('Sure? ')) + ']'); return 0; })`;
  const [file = '', ...args] = run(`"${process.execPath}" --input-type=module -e "${program}"`);
  return spawnSync(file, args, { input, encoding: 'utf8' });
}

describe('a command', () => {
  // util-linux, which every Linux has.
  test.runIf(process.platform === 'linux').each([
    ['yes\n', '[yes]'],
    ['\x04', '[]'],
  ])('asks on a terminal, and reads %j', (typed, read) => {
    const { status, stdout } = asking((program) => ['script', '-qec', program, '/dev/null'], typed);
    expect([status, stdout]).toEqual([0, expect.stringContaining(`Sure? ${read}`)]);
  });

  test('has nobody to ask where its input is no terminal', () => {
    expect(asking((program) => ['sh', '-c', program], 'yes\n').status).toBe(9);
  });

  test('receives its options, arguments, environment and standard input', async () => {
    const argv = ['read', '--level', '5', '--tag', 'a', '--tag=b', 'there', '--json'];
    const { status, stdout, stderr } = await call(main, argv, { env: { HOME: '/home/me' }, input: 'typed' });
    expect(status).toBe(0);
    const given = { level: 5, tag: ['a', 'b'], positionals: ['read', 'there'], home: '/home/me' };
    expect(JSON.parse(stdout)).toEqual({ ...given, mist: '10' });
    expect(stderr).toBe('typed\nstep by step\n');
  });

  test('prints its result as text, or as the only JSON document on standard output', async () => {
    expect(await call(main, ['x'])).toEqual({ status: 0, stdout: 'step by step\nthe result\n', stderr: '' });
    const { stdout, stderr } = await call(main, ['x', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ positionals: ['x'] });
    expect(stderr).toBe('step by step\n');
  });

  test.each([[['x', '--level=10']], [['x', '--level=10', '--json']]])(
    'ends %j with the exit code of its result',
    async (argv) => {
      expect((await call(main, argv)).status).toBe(1);
    },
  );

  test('parses a negative number as an argument, not as an option', async () => {
    const { stdout } = await call(main, ['-5', '-.5', '--tag', '-1st', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ positionals: ['-5', '-.5'], tag: ['-1st'] });
  });

  test('prints its usage and the line of --json for --help, whatever else it is given', async () => {
    for (const argv of [['--help'], ['--bogus', '--help'], ['1', '2', '3', '--help']]) {
      expect(await call(main, argv)).toEqual({
        status: 0,
        stdout: expect.stringMatching(
          /^usage: npm run sample -- <from> \[<to>\] \[options\]\n\n--json prints the result, .*\n$/,
        ),
        stderr: '',
      });
    }
  });

  test.each([
    [[], 'missing: <from>'],
    [['a', 'b', '0x5', 'c'], 'unexpected argument: 0x5'],
    [['a', '--bogus'], "Unknown option '--bogus'"],
    [['a', '-x'], "Unknown option '-x'"],
    [['a', '--level'], "Option '--level <value>' argument missing"],
    [['a', '--json=1'], "Option '--json' does not take an argument"],
  ])('names what is wrong with %j, and shows its usage', async (argv, message) => {
    expect(await call(main, argv)).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining(
        `USAGE: ${message}\n\nusage: npm run sample -- <from> [<to>] [options]\n`,
      ),
    });
  });

  test.each(['x', '-1', '11', '1.5', ''])('refuses the integer %j', async (level) => {
    const { status, stderr } = await call(main, ['a', `--level=${level}`]);
    expect(status).toBe(2);
    expect(stderr).toBe('USAGE: --level must be an integer from 0 to 10\n');
  });

  test('reports an error by its code, as JSON where asked, even for a mistake in the command line', async () => {
    expect(await call(main, ['refuse'])).toEqual({
      status: 1,
      stdout: '',
      stderr: 'REFUSED: this is refused\n',
    });
    const refused = await call(main, ['refuse', '--json']);
    expect(refused).toMatchObject({ status: 1, stderr: '' });
    expect(JSON.parse(refused.stdout)).toEqual({
      status: 'failed',
      code: 'REFUSED',
      error: 'this is refused',
    });
    const misused = await call(main, ['--json', '--bogus']);
    expect(misused).toMatchObject({ status: 2, stderr: '' });
    expect(JSON.parse(misused.stdout)).toMatchObject({ status: 'failed', code: 'USAGE' });
  });

  test('does not hide a fault of the program', async () => {
    await expect(call(main, ['fault'])).rejects.toThrow(TypeError);
  });

  test('has one error for its command line', () => {
    expect(new UsageError('give a or b')).toMatchObject({ code: 'USAGE', message: 'give a or b' });
  });
});

test('a file that is not there is named, with what writes it', async () => {
  const read = readFileArgument('/nowhere/nitro.pcrs', PCRS_HINT);
  await expect(read).rejects.toMatchObject({
    code: 'UNREADABLE_FILE',
    message: expect.stringMatching(
      /^\/nowhere\/nitro\.pcrs can't be read: ENOENT\. `make` writes out\/nitro\.pcrs/,
    ),
  });
});

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** The path of a command from src/commands, as `callScript` takes it. */
const fromCommands = (path: string) => relative('src/commands', path);

/** npm's names of the commands, and their modules. */
const { scripts } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};
const COMMANDS = Object.entries(scripts).flatMap(([name, line]) => {
  const [, path] =
    /^node ((?:src\/commands\/(?:sui|parent|salt|verify|dev)\/(?!main)\w+\.ts)|src\/commands\/image\/eif\.ts|scripts\/check\/move\.ts)$/.exec(
      line,
    ) ?? [];
  return path === undefined ? [] : [{ name, path: fromCommands(path) }];
});

test('npm knows every command', () => {
  expect(COMMANDS.map(({ name }) => name).sort()).toEqual([
    'add_registrar',
    'configure_enclave',
    'create_config',
    'destroy_enclave',
    'doctor',
    'eif',
    'expose_enclave',
    'new_app',
    'publish',
    'register_enclave',
    'retire_config',
    'revoke_registrar',
    'rotate',
    'run_enclave',
    'salt_seed',
    'status',
    'stop_enclave',
    'submit',
    'test:move',
    'update_config',
    'update_pcrs',
    'update_weather',
    'upgrade',
    'verify',
  ]);
});

/** Whether its command line is typed by schemas, and its help generated. */
const isTyped = (path: string) =>
  /from '[./\w]*\/typed_command\.ts'/.test(readFileSync(join(ROOT, path), 'utf8'));

/** Packages that only an action needs: loading them takes most of a second. */
const HEAVY = /node_modules\/(@mysten|@noble|@peculiar|@zktx\.io|valibot|yaml)\//;

describe.each(COMMANDS)('$name', ({ name, path }) => {
  const typed = isTyped(join('src/commands', path));
  const program = typed && !name.includes(':') ? `sui-enclave ${name}` : `npm run ${name} --`;

  test('as a process explains its use by --help', async () => {
    const { status, stdout, stderr } = await spawnScript(path, ['--help'], { env: { NODE_DEBUG: 'esm' } });
    expect(status).toBe(0);
    expect(stdout).toMatch(new RegExp(`^usage: ${program} `));
    expect(stderr).toContain('src/commands/command.ts');
    if (!typed) expect(stderr).not.toMatch(HEAVY);
  });

  test('ends with exit code 2 where its command line is wrong', async () => {
    const { status, stdout, stderr } = await callScript(path, ['--bogus']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain("Unknown option '--bogus'");
    if (typed) expect(stderr).toMatch(new RegExp(`\\. See ${program} --help\n$`));
    else expect(stderr).toContain(`usage: ${program} `);
  });
});

/** Every module that makes a command, also those that only make runs. */
const PROGRAMS = '{src/commands,scripts}/**/*.ts';
const MODULES = globSync(PROGRAMS, { cwd: ROOT }).filter(
  (path) =>
    !path.endsWith('command.ts') &&
    /^export const main = \w+\(/m.test(readFileSync(join(ROOT, path), 'utf8')),
);

/** Programs that are not commands: servers that run until they are stopped, and a test suite with steps of its own. */
const OTHERS = [
  'scripts/check/package.ts',
  'src/commands/dev/main.ts',
  'src/commands/dev/prover/main.ts',
  'src/commands/dev/wallet/main.ts',
];

test('everything that npm or make runs of src/commands and scripts is a command, except servers and the test of the package', () => {
  const makefile = readFileSync(new URL('../../../Makefile', import.meta.url), 'utf8');
  const lines = [...Object.values(scripts), ...makefile.split('\n')];
  const run = lines.flatMap((line) =>
    [...line.matchAll(/\bnode .*?((?:src\/commands|scripts)\/[\w/]+\.ts)/g)].map(([, path]) => path),
  );
  expect(run.length).toBeGreaterThan(20);
  expect(run.filter((path) => !MODULES.includes(path ?? '') && !OTHERS.includes(path ?? ''))).toEqual([]);
  const parsers = globSync(PROGRAMS, { cwd: ROOT }).filter((path) =>
    /parseArgs|process\.argv/.test(readFileSync(join(ROOT, path), 'utf8')),
  );
  expect(parsers.sort()).toEqual(['src/commands/command.ts', 'src/commands/command_line.ts']);
});

describe.each(MODULES)('%s', (path) => {
  test('explains its use by --help, with --json', async () => {
    const { status, stdout } = await callScript(fromCommands(path), ['--help']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^usage: (sui-enclave|npm run|node (src\/commands|scripts)\/)/);
    expect(stdout).toContain('--json');
  });

  test('with --json reports its errors as one JSON document', async () => {
    const { status, stdout, stderr } = await callScript(fromCommands(path), ['--bogus', '--json']);
    expect({ status, stderr }).toEqual({ status: 2, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ code: 'USAGE', error: expect.any(String) });
  });

  test('prints through the framework alone, so that nothing is mixed into the JSON', () => {
    const source = readFileSync(join(ROOT, path), 'utf8');
    expect(source).not.toMatch(/\bconsole\.(log|info|table)|process\.stdout|stdio: 'inherit'/);
  });
});

const SUI = COMMANDS.filter(({ path }) => path.startsWith('sui/'));

test.each(SUI)('the help of $name lists the common options, and the exit codes', async ({ path }) => {
  const { stdout } = await callScript(path, ['--help']);
  for (const option of ['--network', '--rpc-url', '--address', '--unsigned', '--dry-run', '--json']) {
    expect(stdout).toContain(option);
  }
  expect(stdout).toContain('exit codes:');
  // Every option is followed by a gap, however long its value's name is.
  const options = stdout.split('\n').filter((line) => line.startsWith('  --'));
  for (const line of options) expect(line).toMatch(/^ {2}--[\w-]+( <[\w ]+>)? {2,}\S/);
});

test('a process ends with the exit code of its command', async () => {
  const { status, stdout, stderr } = await spawnScript('sui/status.ts', ['0x1', 'http://127.0.0.1:1', '0x5']);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/^FAILED \(USAGE\): unexpected argument: 0x5\n/);
});
