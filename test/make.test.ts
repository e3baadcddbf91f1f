/** The targets of the Makefile: `make help` lists them, and npm has the same names. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

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
  expect(targets).toEqual(expect.arrayContaining(['help', 'test', 'test-e2e', 'image', 'clean']));
});

test('make alone builds the image', () => {
  expect(makefile).toMatch(/^\.DEFAULT_GOAL := image$/m);
});

test('a target has the name of the npm script that it runs, with - for :', () => {
  const rules = makefile.split(/^(?=[a-z][\w-]*:)/m);
  const pairs = rules.flatMap((rule) => {
    const [, target = ''] = /^([a-z][\w-]*):/.exec(rule) ?? [];
    return [...rule.matchAll(/^\t.*npm run --silent ([\w:]+)/gm)].map(([, name = '']) => [target, name]);
  });
  expect(pairs.length).toBeGreaterThan(5);
  for (const [target, name = ''] of pairs) {
    expect(scripts).toHaveProperty([name]);
    if (target !== 'test') expect(name.replaceAll(':', '-')).toBe(target);
  }
});

test('every npm script of these kinds is a target too', () => {
  const kinds = /^(dev|test|package|fuzz|bench)\b/;
  for (const name of Object.keys(scripts).filter((script) => kinds.test(script))) {
    expect(targets).toContain(name.replaceAll(':', '-'));
  }
});
