/** `make help` lists the targets of the Makefile. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

test('make help lists every target with a line from its comment', () => {
  const makefile = readFileSync(`${ROOT}Makefile`, 'utf8');
  const targets = [...makefile.matchAll(/^([a-z][\w-]*):/gm)].map(([, name = '']) => name);
  const { status, stdout } = spawnSync('make', ['--silent', 'help'], { cwd: ROOT, encoding: 'utf8' });
  expect(status).toBe(0);
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => /^make (\S+) +\w.+$/.exec(line)?.[1])).toEqual(targets);
  expect(targets).toContain('test');
});
