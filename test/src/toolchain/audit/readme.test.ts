/** The page's table of lies: each row names a test that exists, and a verdict that an audit can have. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AUDIT_CODES } from '../../../../src/toolchain/audit/errors.ts';
import { ROOT } from './applications.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const [, section = ''] = read('src/toolchain/audit/README.md').split('\n## Lies\n');
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(2)
  .map((line) => line.slice(2, -2).split(' | '));

test('each row names a test and a code that exist', () => {
  const files = globSync(['test/src/toolchain/audit/*.test.ts', 'test/e2e/audit/*.audit.ts'], { cwd: ROOT });
  const tests = files.map(read).join('\n');
  expect(rows.filter(([, , , title]) => !tests.includes(`'${title}'`))).toEqual([]);
  const codes = rows.map(([, , verdict = '']) => /^`(.*)`$/.exec(verdict)?.[1] ?? null);
  expect(codes.filter((code) => code !== null && !Object.hasOwn(AUDIT_CODES, code))).toEqual([]);
  expect(new Set(rows.map(([, lie]) => lie)).size).toBe(rows.length);
});
