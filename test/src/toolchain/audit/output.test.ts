/**
 * The whole output of an audit's process: the command's own texts as whole lines, and everything else as a
 * few lines of printable ASCII.
 */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const url = (path: string) => JSON.stringify(new URL(`../../../../src/${path}`, import.meta.url).href);

/** Runs a program as if it were a command. @param code has the command's `io` */
function run(code: string, asJson = false) {
  const program = `
    import { takeOutput } from ${url('toolchain/audit/output.ts')};
    import { runAsProcess } from ${url('cli/command.ts')};
    const ESC = '\\u001b[2J\\u009b\\u202e';
    await runAsProcess(async (_argv, _env, outer) => { const io = takeOutput(outer, ${asJson}); ${code}; return 3; });
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    env: {},
  });
  return { status, stdout, stderr };
}

/** Output without the control characters that a terminal would obey. */
const PLAIN = /^[\n\x20-\x7e…]*$/;

test('the texts of the command are limited in lines and length', () => {
  const { status, stdout, stderr } = run(
    "io.log('a\\n'.repeat(5000) + ESC); io.error(ESC + 'x'.repeat(9999))",
  );
  expect(status).toBe(3);
  expect([PLAIN.test(stdout), PLAIN.test(stderr)]).toEqual([true, true]);
  expect(stdout.split('\n').length).toBe(2002);
  expect(stdout).toContain('… and 3001 more lines');
  expect(stderr).toMatch(/^\\u\{1b\}.{1990,2000}…\n$/);
});

test('a JSON document is printed whole', () => {
  const { stdout } = run("io.log(JSON.stringify('x'.repeat(99999)))", true);
  expect(JSON.parse(stdout)).toHaveLength(99_999);
});

test.each([
  ['console.log', 'console.log(ESC)'],
  ['console.error', "console.error('%s', ESC)"],
  ['standard output', 'process.stdout.write(ESC)'],
  ['bytes', "process.stdout.write(Buffer.from(ESC + '\\n'))"],
  ['a warning', 'process.emitWarning(ESC)'],
  ['a warning with a name', 'process.emitWarning(ESC, { type: ESC, code: ESC, detail: ESC })'],
  ['a deprecation', "(await import('node:util')).deprecate(() => {}, ESC, ESC)()"],
])('%s of a library is on standard error, without control characters', (_what, code) => {
  const { status, stdout, stderr } = run(`${code}; await new Promise(setImmediate)`, true);
  expect({ status, stdout }).toEqual({ status: 3, stdout: '' });
  expect(stderr).toMatch(PLAIN);
  expect(stderr).toContain('\\u{1b}[2J');
});

test('the output of libraries is bounded', () => {
  const { stdout, stderr } = run(
    "for (let i = 0; i < 500; i += 1) console.log('x'.repeat(5000)); for (let i = 0; i < 500; i += 1) process.emitWarning('w' + i); await new Promise(setImmediate)",
  );
  expect(stdout).toBe('');
  expect(stderr.length).toBeLessThan(40_000);
  expect(stderr).toMatch(/… more was left out\n$/);
});

test.each([
  [
    'thrown in a callback',
    'setImmediate(() => { throw new Error(ESC); }); await new Promise(() => setTimeout(() => {}, 1e6))',
  ],
  [
    'of a promise that is not awaited',
    'void Promise.reject(new Error(ESC)); await new Promise(() => setTimeout(() => {}, 1e6))',
  ],
  ['of the command itself', 'throw new Error(ESC)'],
  ['that is not an Error', 'throw ESC'],
])('an error %s ends the process without a verdict, and is not a difference', (_what, code) => {
  for (const asJson of [false, true]) {
    const { status, stdout, stderr } = run(code, asJson);
    expect(status).toBe(2);
    expect(stdout + stderr).toMatch(PLAIN);
    if (asJson) expect(JSON.parse(stdout)).toMatchObject({ verdict: 'none', code: 'INTERNAL' });
    else expect(stderr).toContain('NO VERDICT (INTERNAL): ');
  }
});
