import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import * as zklogin from '../../../src/zklogin/index.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const readme = read('src/zklogin/README.md');
const snippets = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);

test('the README lists every code', () => {
  const codes = [...read('src/zklogin/errors.ts').matchAll(/code = '(\w+)'/g)].map(([, code]) => code);
  expect(codes.length).toBeGreaterThan(15);
  const listed = [...readme.matchAll(/`(ZKLOGIN_\w+)`/g)].map(([, code]) => code);
  expect(listed.sort()).toEqual(codes.sort());
});

test('what it imports is exported', () => {
  for (const snippet of snippets) {
    const [, names = ''] = /import \{([^}]+)\} from 'sui-enclave\/zklogin'/.exec(snippet) ?? [];
    const values = names.split(',').map((each) => each.trim());
    for (const name of values.filter((each) => each !== '' && !each.startsWith('type '))) {
      expect(zklogin).toHaveProperty(name);
    }
  }
});

test('it names every function and class that a page needs', () => {
  const functions = Object.entries(zklogin).filter(
    ([name, value]) => typeof value === 'function' && !/Error$/.test(name),
  );
  // Found by whoever looks for them; nobody needs them for a login.
  const others = ['browserSession', 'decodeJwtPayload', 'Login', 'ZkLoginSession'];
  for (const [name] of functions.filter(([name]) => !others.includes(name))) expect(readme).toContain(name);
});

describe("the README's page", () => {
  const [mine = '', page = ''] = snippets;
  /** Line breaks aside, which the formatter sets otherwise. */
  const words = (code: string) =>
    code
      .replace(/,\s*\}/g, ' }')
      .replace(/\s+/g, ' ')
      .trim();

  test('is the one that make test-wallet runs and make dev-wallet serves', () => {
    const walked = read('scripts/dev/wallet/wallet.ts')
      .replace(/^\/\*\*.*?\*\/\n/s, '')
      .replace("'../../../src/zklogin/index.ts'", "'sui-enclave/zklogin'")
      .replace("'./my_wallet.ts'", "'./my_wallet.js'");
    expect(words(page)).toBe(words(walked));
  });

  test("finds in make test-package's project what is a wallet's own", () => {
    expect(read('test/e2e/package/my_wallet.ts.txt')).toBe(mine);
  });
});
