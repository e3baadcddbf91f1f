import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as zklogin from '../../src/zklogin/index.ts';

const read = (path: string) => readFileSync(new URL(`../../src/zklogin/${path}`, import.meta.url), 'utf8');
const readme = read('README.md');

test('the README lists every code', () => {
  const codes = [...read('errors.ts').matchAll(/code = '(\w+)'/g)].map(([, code]) => code);
  expect(codes.length).toBeGreaterThan(15);
  const listed = [...readme.matchAll(/`(ZKLOGIN_\w+)`/g)].map(([, code]) => code);
  expect(listed.sort()).toEqual(codes.sort());
});

test('what it imports is exported', () => {
  const [, names = ''] = /import \{([^}]+)\} from 'sui-enclave\/zklogin'/.exec(readme) ?? [];
  for (const name of names.split(',').map((each) => each.trim())) expect(zklogin).toHaveProperty(name);
});
