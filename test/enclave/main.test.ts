/** Tests the image's own init, and not the program that runs its parts for tests. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { canRun, INIT, temporaryFolder } from './init.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the sources that the image's build compiles to its init. */
function findImageSources(): string[] {
  const build = readFileSync(join(ROOT, 'src/toolchain/image/programs.sh'), 'utf8');
  const [, patterns = ''] = /^g\+\+ .*\$linking (.+) -o \/programs\/init$/m.exec(build) ?? [];
  const sources = patterns.split(' ').flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  expect(sources).toContain('enclave/init/main.cc');
  return sources.sort();
}

interface Compiled {
  readonly program: string;
  /** Functions that can't be reached from `main`, according to the linker. */
  readonly unreachable: readonly string[];
}

/** Compiles the sources. Keeps the program in build/ until a source of the enclave changes. */
function compile(): Compiled {
  const text = findImageSources()
    .map((source) => `#include "${source}"\n`)
    .join('');
  const folder = join(ROOT, 'build/test', `image-init-${hashSources(text)}`);
  if (!existsSync(folder)) {
    const temporary = temporaryFolder();
    const stderr = runCompiler(text, join(temporary, 'init'));
    writeFileSync(join(temporary, 'linker'), stderr);
    mkdirSync(join(ROOT, 'build/test'), { recursive: true });
    cpSync(temporary, `${folder}.new`, { recursive: true });
    renameSync(`${folder}.new`, folder);
  }
  const stderr = readFileSync(join(folder, 'linker'), 'utf8');
  return {
    program: join(folder, 'init'),
    unreachable: stderr.match(/(?<=\.text\.)_ZNK?7enclave\w+/g) ?? [],
  };
}

const FLAGS = ['-std=c++20', '-O0', '-ffunction-sections', '-Wl,--gc-sections,--print-gc-sections'];

/** Compiles and links the program. @returns the output of the linker */
function runCompiler(text: string, program: string): string {
  const { status, stderr } = spawnSync('g++', [...FLAGS, '-I', ROOT, '-x', 'c++', '-', '-o', program], {
    input: text,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`g++ failed: ${stderr}`);
  return stderr;
}

function hashSources(text: string): string {
  const hash = createHash('sha256').update(JSON.stringify([text, FLAGS]));
  hash.update(spawnSync('g++', ['--version']).stdout);
  for (const path of globSync('enclave/**/*.{cc,h}', { cwd: ROOT }).sort()) {
    hash.update(JSON.stringify([path, readFileSync(join(ROOT, path), 'utf8')]));
  }
  return hash.digest('hex');
}

const run = (program: string, args: readonly string[]) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 5000 });

describe.runIf(canRun)("the image's init", () => {
  test('boots an enclave and does nothing else: it has no role and no function that only tests use', () => {
    const { program: init, unreachable } = compile();
    expect(unreachable).toEqual([]);

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
    // Some roles would wait for something. A call without arguments shows that init refuses these too.
    const usage = run(INIT, []).stderr.replace(/^usage: init /, '');
    const roles = usage.split(' | ').map((role) => role.replace(/ .*\n?/, ''));
    expect(roles).toContain('supervise');
    for (const role of ['', ...roles]) expect(run(init, [role])).toMatchObject(refusal);
  });
});
