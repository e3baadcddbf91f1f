/** The targets of the Makefile, which `make help` lists, and the scripts of npm. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
