/** The image's own init, as opposed to the program that runs its parts for tests. */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { canRun, INIT, temporaryFolder } from './init.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The sources that the image's build compiles to its init. */
function imageSources(): string[] {
  const build = readFileSync(join(ROOT, 'src/toolchain/image/programs.sh'), 'utf8');
  const [, patterns = ''] = /^g\+\+ .*\$linking (.+) -o \/programs\/init$/m.exec(build) ?? [];
  const sources = patterns.split(' ').flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  expect(sources).toContain('enclave/init/main.cc');
  return sources.sort();
}

/** Compiles them to `program`, and returns which of their functions the linker finds that nothing can reach from main. */
function compile(program: string): string[] {
  const flags = ['-std=c++20', '-O0', '-ffunction-sections', '-Wl,--gc-sections,--print-gc-sections'];
  const { status, stderr } = spawnSync('g++', [...flags, '-I', ROOT, '-x', 'c++', '-', '-o', program], {
    input: imageSources()
      .map((source) => `#include "${source}"\n`)
      .join(''),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`g++ failed: ${stderr}`);
  return stderr.match(/(?<=\.text\.)_ZNK?7enclave\w+/g) ?? [];
}

const run = (program: string, args: readonly string[]) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 5000 });

describe.runIf(canRun)("the image's init", () => {
  test('boots an enclave and does nothing else: it has no role and no function that only tests use', () => {
    const init = join(temporaryFolder(), 'init');
    expect(compile(init)).toEqual([]);

    const refusal = {
      status: 2,
      stdout: '',
      stderr: 'init: runs only as the first process of an enclave\n',
    };
    for (const args of [
      ['settings', '/dev/null'],
      ['correction', 'ptp0', '0'],
      ['nsm-time', '/dev/null', '/dev/null'],
    ]) {
      expect(run(INIT, args)).toMatchObject({ status: 0, stderr: '' });
      expect(run(init, args)).toMatchObject(refusal);
    }
    // Also those that wait for something: a call without their arguments is enough to tell.
    const usage = run(INIT, []).stderr.replace(/^usage: init /, '');
    const roles = usage.split(' | ').map((role) => role.replace(/ .*\n?/, ''));
    expect(roles).toContain('supervise');
    for (const role of ['', ...roles]) expect(run(init, [role])).toMatchObject(refusal);
  }, 60_000);
});
