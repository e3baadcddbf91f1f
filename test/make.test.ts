/** The targets of the Makefile, which `make help` lists, and the scripts of npm. */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const makefile = readFileSync(`${ROOT}Makefile`, 'utf8');
const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
  scripts: Record<string, string>;
};
const targets = [...makefile.matchAll(/^([a-z][\w-]*):/gm)].map(([, name = '']) => name);

test('make help lists every target with a line from its comment', () => {
  const { status, stdout } = spawnSync('make', ['--silent', 'help'], { cwd: ROOT, encoding: 'utf8' });
  expect(status).toBe(0);
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => /^make (\S+) +\w.+$/.exec(line)?.[1])).toEqual(targets);
  expect(targets).toContain('test');
});

test('there are few targets and npm scripts, and only dev and test are also commands of the program', () => {
  expect(targets.length).toBeLessThanOrEqual(31);
  expect(Object.keys(scripts).length).toBeLessThanOrEqual(25);
  // Many developers expect that a package has the script `dev`.
  const sharedNames = Object.keys(scripts).filter((name) => name !== 'dev' && Object.hasOwn(COMMANDS, name));
  expect(sharedNames).toEqual(['test']);
});

/**
 * Modules of the proving service, of the salt service, and of commands that only a clone has. The last module
 * writes an author's repository, and its messages name the clone.
 */
const CLONE_MODULES =
  /^src\/(prover|console|apps|toolchain\/prover|toolchain\/dev\/(prover|wallet|new_app\.ts)|service\/salt_seeds\.ts|create\/main\.ts)/;

test('messages for authors, whose repositories have no Makefile, never name a target of make', () => {
  const command = new RegExp(`\\bmake (${targets.join('|')})\\b|\\b(by|run|with) make\\b`);
  const isComment = (line: string) => /^\s*(\/\/|\/?\*)/.test(line);
  const lines = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['**/node_modules'] })
    .filter((file) => !CLONE_MODULES.test(file))
    .flatMap((file) =>
      readFileSync(`${ROOT}${file}`, 'utf8')
        .split('\n')
        .map((line, index) => ({ line, place: `${file}:${index + 1}` })),
    )
    .filter(({ line }) => !isComment(line) && command.test(line) && !line.includes('IS_CLONE ?'));
  expect(lines).toEqual([]);
});
