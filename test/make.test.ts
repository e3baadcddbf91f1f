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

test('there are few commands to type, and one way to type each', () => {
  expect(targets.length).toBeLessThanOrEqual(31);
  expect(Object.keys(scripts).length).toBeLessThanOrEqual(25);
  // Many developers expect `npm run dev` of a package.
  const repeated = Object.keys(scripts).filter((name) => name !== 'dev' && Object.hasOwn(COMMANDS, name));
  expect(repeated).toEqual(['test']);
});

/**
 * Modules of commands that only a clone has, of the proving service and of the salt service. The last one
 * speaks to people without a repository, and names the clone.
 */
const OF_A_CLONE =
  /^src\/(prover|console|apps|toolchain\/prover|toolchain\/dev\/(prover|wallet|new_app\.ts)|service\/salt_seeds\.ts|create\/main\.ts)/;

test("messages in an author's repository, which has no Makefile, never say make", () => {
  const command = new RegExp(`\\bmake (${targets.join('|')})\\b|\\b(by|run|with) make\\b`);
  const isComment = (line: string) => /^\s*(\/\/|\/?\*)/.test(line);
  const lines = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['**/node_modules'] })
    .filter((file) => !OF_A_CLONE.test(file))
    .flatMap((file) =>
      readFileSync(`${ROOT}${file}`, 'utf8')
        .split('\n')
        .map((line, index) => ({ line, place: `${file}:${index + 1}` })),
    )
    .filter(({ line }) => !isComment(line) && command.test(line) && !line.includes('IS_CLONE ?'));
  expect(lines).toEqual([]);
});
