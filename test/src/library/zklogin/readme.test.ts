import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import * as zklogin from '../../../../src/library/zklogin/index.ts';

const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
const readme = read('src/library/zklogin/README.md');
const snippets = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);

test('the README lists every code', () => {
  const codes = Object.keys(zklogin.ZKLOGIN_CODES);
  const listed = [...readme.matchAll(/^\| (`ZKLOGIN_[^|]*)\|/gm)].flatMap(([, cell = '']) => [
    ...cell.matchAll(/`(\w+)`/g),
  ]);
  expect(listed.map(([, code]) => code).sort()).toEqual(codes.sort());
});

test('the imports of the README are exported', () => {
  for (const snippet of snippets) {
    const [, names = ''] = /import \{([^}]+)\} from 'sui-enclave\/zklogin'/.exec(snippet) ?? [];
    const values = names.split(',').map((name) => name.trim());
    for (const name of values.filter((name) => name !== '' && !name.startsWith('type '))) {
      expect(zklogin).toHaveProperty(name);
    }
  }
});

test('the README names every function and class that a page needs', () => {
  const functions = Object.entries(zklogin).filter(
    ([name, value]) => typeof value === 'function' && !/Error$/.test(name),
  );
  // A login doesn't need these names.
  const undocumented = ['createBrowserStore', 'decodeJwtPayload', 'Login', 'ZkLoginSession'];
  for (const [name] of functions.filter(([name]) => !undocumented.includes(name)))
    expect(readme).toContain(name);
});

describe('the page in the README', () => {
  const [myWallet = '', page = ''] = snippets;
  /** Normalises line breaks, which the formatter changes. */
  const normalize = (code: string) =>
    code
      .replace(/,\s*\}/g, ' }')
      .replace(/\s+/g, ' ')
      .trim();

  test('is the page that make test-wallet tests', () => {
    const testedPage = read('test/e2e/wallet/readme/wallet.ts')
      .replace(/^\/\*\*.*?\*\/\n/s, '')
      .replace(/'[./]*\/library\/zklogin\/index\.ts'/, "'sui-enclave/zklogin'")
      .replace("'./my_wallet.ts'", "'./my_wallet.js'");
    expect(normalize(page)).toBe(normalize(testedPage));
  });

  test('imports the same my_wallet.ts as the project of make test-package', () => {
    expect(read('test/e2e/package/my_wallet.ts.txt')).toBe(myWallet);
  });
});
