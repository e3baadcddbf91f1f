import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { APPLICATION_TEMPLATES, filesInClone, rename } from '../../../../src/create/template.ts';
import { applicationName, main } from '../../../../src/toolchain/dev/new_app.ts';
import { readFiles } from '../../../page_files.ts';

test.each(['stocks', 'gas_prices', 'ab', 'x2y', 'a_b'])('%s can be the name of an application', (name) => {
  expect(v.is(applicationName, name)).toBe(true);
});

test.each([
  '',
  'Stocks',
  '2x',
  'a-b',
  'a__b',
  'a_',
  '../x',
  'module',
  'u64',
  'enclave',
  'self',
  'request',
  'uint8_array',
  'a',
  'x2',
  'a'.repeat(33),
])('%j cannot be the name of an application', (name) => {
  expect(v.is(applicationName, name)).toBe(false);
});

describe.each([
  ['stocks', 'Stocks'],
  ['news', 'News'],
  ['series', 'Series'],
  ['gas_fees', 'GasFees'],
  ['dice', 'Dice'],
])('the files of %s', (name, type) => {
  const all = [...filesInClone('oracle', name)].flat().join('\n');

  test.each(APPLICATION_TEMPLATES)(
    'of the template %s do not mention a price, or the package of the commands',
    (template) => {
      const text = [...filesInClone(template, name)].flat().join('\n');
      expect(text).not.toMatch(/price|sui-enclave-cli/i);
    },
  );

  test('have the name as given, with neither singular nor plural changed', () => {
    const words = new Set(all.match(new RegExp(`[a-z_]*${name}[a-z_]*|\\b${type}\\w*`, 'gi')));
    const upper = name.toUpperCase();
    const ends = ['API_KEY', 'MAX_AGE_SECONDS', 'STALE', 'TIMEOUT', 'UNAVAILABLE'];
    const constants = ends.map((end) => `${upper}_${end}`);
    expect(words).toEqual(new Set([name, `${name}_tests`, `${type}Error`, upper, ...constants]));
  });
});

test('the name replaces the word price wherever that is the name of the application', () => {
  const text = `module price::price; public struct PRICE {} PriceError 'price' move/price/tests/price_tests.move`;
  expect(rename(text, 'gas_prices')).toBe(
    `module gas_prices::gas_prices; public struct GAS_PRICES {} GasPricesError 'gas_prices' move/gas_prices/tests/gas_prices_tests.move`,
  );
});

test('a page is read as paths with the block that follows each of them', () => {
  const page = '`a/b.ts`\n\n```ts\none\ntwo\n```\n\n`c`\n\ntext\n\n```sh\nx\n```\n';
  expect([...readFiles(page)]).toEqual([['a/b.ts', 'one\ntwo\n']]);
});

test.each([
  [[], 'missing: <name>'],
  [['stocks', '0x5'], 'unexpected argument: 0x5'],
  [['Stocks'], '<name> must begin with a letter and consist of at most 32 lower case letters'],
  [['x2'], '<name> must have two letters'],
])('%j is refused with exit code 2 before anything is written', async (argv, message) => {
  let printed = '';
  const io = { log: () => {}, error: (text: string) => (printed += text), stdin: () => '' };
  expect(await main(argv, {}, io)).toBe(2);
  expect(printed).toContain(message);
});
